"""The script for a real GPU, rehearsed: each of its lines runs here, so that a borrowed GPU meets no typing error."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "gpu" / "engine_roofline.py"


@pytest.mark.e2e
def test_every_line_of_the_gpu_script_runs_in_the_interpreter() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", SCRIPT, "--rehearse"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WRONG" not in done.stdout
    for what in ("kernels", "graphs", "roof", "decode", "prefill", "serve", "load"):
        assert f"| {what} |" in done.stdout


def test_without_a_gpu_the_script_says_that_it_was_not_run() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "not run: this PyTorch sees no CUDA device\n")
