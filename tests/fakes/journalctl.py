"""A stand-in for journalctl: prints the lines of a file as ``-o json`` does, from a cursor on, and follows it.

    python -m tests.fakes.journalctl FILE [the arguments of journalctl]

Each line of FILE is an entry; one that is no JSON is printed as it is. A cursor that is not there is refused as the
real program refuses it; ``FILE.denied`` makes it silent, as it is towards a user who may not see the system's journal.
"""

import json
import sys
import time
from pathlib import Path


def main() -> int:
    file, options = Path(sys.argv[1]), sys.argv[2:]
    cursor = next((option.partition("=")[2] for option in options if option.startswith("--cursor=")), None)
    matches = {option for option in options if option.startswith("_BOOT_ID=")}
    if not all(option.startswith("--") or "=" in option or option == "+" for option in options):
        return 1
    if cursor is not None and f'"__CURSOR": "{cursor}"' not in file.read_text():
        sys.stderr.write("Failed to seek to cursor: Invalid argument\n")
        return 1
    printed, begun = 0, cursor is None
    while True:
        lines = file.read_text().splitlines()
        for line in lines[printed:]:
            begun = begun or f'"__CURSOR": "{cursor}"' in line
            if begun and not file.with_suffix(".denied").exists() and _matches(line, matches):
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
        printed = len(lines)
        if file.with_suffix(".ended").exists():
            return 3
        time.sleep(0.01)


def _matches(line: str, boots: set[str]) -> bool:
    try:
        entry = json.loads(line)
    except ValueError:
        return True
    return not boots or not isinstance(entry, dict) or f"_BOOT_ID={entry.get('_BOOT_ID')}" in boots


if __name__ == "__main__":
    sys.exit(main())
