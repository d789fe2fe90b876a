"""One scenario under the real nvidia-ml-py: a subprocess each, for pynvml cannot change its library."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

LIMIT_S = 60

PRELUDE = """
import ctypes, json, sys
import pynvml as nvml
from ctypes import byref
nvml.nvmlLib = ctypes.CDLL({library!r})

def error(function, *arguments):
    try:
        function(*arguments)
    except nvml.NVMLError as failed:
        return failed.value
    return 0

def gpu(index):
    return nvml.nvmlDeviceGetHandleByIndex(index)
"""


def start(library: Path, state: Path, body: str, *, init: bool = True) -> subprocess.Popen[str]:
    """Run ``body`` after the prelude (and nvmlInit); it prints lines and may read from standard input."""
    opening = PRELUDE.format(library=str(library)) + ("nvml.nvmlInit()\n" if init else "")
    return subprocess.Popen(
        [sys.executable, "-c", opening + dedent(body)],
        env={**os.environ, "CORRAL_FAKE_NVML_STATE": str(state)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(library: Path, state: Path, expression: str, *, init: bool = True) -> Any:
    """The value of a Python expression, through JSON."""
    with start(library, state, f"print(json.dumps({expression.strip()}))", init=init) as process:
        out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, out
    return json.loads(out)
