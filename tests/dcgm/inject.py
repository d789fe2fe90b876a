"""Puts one value into a host engine with its own test function: BINDINGS ADDRESS GPU FIELD VALUE.

Only a test does that: an engine with injected values tells everybody who asks of faults that are none. The
packaged bindings have no call for it, so the exported function is called as they would.
"""

import os
import sys
import tempfile
import time
from ctypes import byref, c_uint
from pathlib import Path

from agent.calls import CallTable
from agent.sources.dcgm.bindings import Caller, load
from agent.sources.dcgm.engine import Engine

DOUBLES = frozenset({155, 157, 160, 163, 164, *range(1001, 1009)})
FUNCTION = "dcgmInjectFieldValue"


def inject(folder: Path, address: str, gpu: int, field: int, number: float) -> None:
    """Inject the value as of now. Raises SourceDown."""
    bindings = load(folder)
    table = CallTable.create(Path(tempfile.mkdtemp()) / "calls", 1)
    engine = Engine(Caller(bindings, table.slot(0)), address)
    value = bindings.structs.c_dcgmFieldValue_v1()
    value.version = bindings.structs.dcgmFieldValue_version1
    value.fieldId, value.fieldType, value.status = field, ord("d" if field in DOUBLES else "i"), 0
    value.ts = int(time.time() * 1e6)
    if field in DOUBLES:
        value.value.dbl = number
    else:
        value.value.i64 = int(number)
    found = bindings.structs._dcgmGetFunctionPointer(FUNCTION)(engine.handle, c_uint(gpu), byref(value))
    bindings.structs._dcgmCheckReturn(found)


if __name__ == "__main__":
    inject(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    os._exit(0)
