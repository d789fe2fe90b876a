"""The active checks on a real GPU: every figure, its verdict and the time that it took.

    python tests/gpu/diag_cuda.py [--burn-s 20]

Needs a CUDA build of PyTorch and one free GPU; with two or more also the sum over NVLink. Without them it says that it
was not run and exits with 0. Exits with 1 if a test has no figure, or finds a problem on a GPU that should be sound.
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.diag.ruling import rule  # noqa: E402 - the tree is put on the path first
from agent.diag.verdict import Subject  # noqa: E402 - as above
from engine.diag.__main__ import TESTS, run  # noqa: E402 - as above
from vocab.diag import Begun  # noqa: E402 - as above


def main() -> int:
    """Print the table, or why there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--burn-s", type=float, default=20.0)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("not run: PyTorch is not installed")
        return 0
    if not torch.cuda.is_available():
        print("not run: this PyTorch sees no CUDA device")
        return 0
    board = torch.cuda.get_device_name(0)
    print(f"{board}, {torch.cuda.device_count()} GPUs, torch {torch.__version__}, CUDA {torch.version.cuda}\n")
    print("| test | result | seconds | found |\n|---|---|---|---|")
    tests = [test for test in TESTS if test != "allreduce" or torch.cuda.device_count() > 1]
    bad = False
    began = time.monotonic()
    for figures in run(tests, "cuda", [], options.burn_s):
        if isinstance(figures, Begun):
            began = time.monotonic()
            continue
        check = rule(figures, Subject("GPU", board), "here", time.time())
        assert check is not None
        bad |= check.result == "problem" or type(figures).__name__ == "Unmeasured"
        print(f"| {check.check} | {check.result} | {time.monotonic() - began:.1f} | {check.text} |", flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
