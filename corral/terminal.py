"""How wide what we print may be: as wide as the terminal, and 80 columns where there is none."""

import os
import shutil

USUAL = 80
LEAST = 40


def width() -> int:
    """Columns. COLUMNS counts, as everywhere."""
    return max(
        LEAST, shutil.get_terminal_size((USUAL, 24)).columns if os.environ.get("COLUMNS") or _is_one() else USUAL
    )


def _is_one() -> bool:
    try:
        return os.isatty(1)
    except OSError:
        return False
