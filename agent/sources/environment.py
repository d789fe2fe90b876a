"""What a process that reads for the agent finds in its environment."""

import os
from pathlib import Path

import agent

_ROOT = Path(agent.__file__).resolve().parents[1]
ARENAS = "1"  # of malloc: each costs its thread some 50 KiB, and under the interpreter's lock one is never waited for


def of_child() -> dict[str, str]:
    """The agent's own, with the folder of this very agent first among those of modules."""
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    return {"MALLOC_ARENA_MAX": ARENAS, **os.environ, "PYTHONPATH": path}
