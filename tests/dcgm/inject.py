"""Puts one value into a host engine with its own test function: BINDINGS ADDRESS GPU FIELD VALUE.

Only a test does that, and a drill: an engine with injected values tells everybody who asks of faults that are none.
"""

import os
import sys
import tempfile
from pathlib import Path

from agent.calls import CallTable
from agent.sources.dcgm.bindings import Caller, load
from agent.sources.dcgm.engine import Engine


def inject(folder: Path, address: str, gpu: int, field: int, number: float) -> None:
    """Inject the value as of now. Raises SourceDown."""
    table = CallTable.create(Path(tempfile.mkdtemp()) / "calls", 1)
    Engine(Caller(load(folder), table.slot(0)), address).inject(gpu, field, number)


if __name__ == "__main__":
    inject(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    os._exit(0)
