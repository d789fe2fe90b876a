"""Measure: ``python -m engine.diag --device cuda|cpu [--fault lost|corrupt|hang]… [--burn-s N] TEST…``.

Prints ``vocab.diag`` figures, one JSON object a line; exits 0 whatever they say. ``--fault`` is for virtual GPUs, which
are computed on the CPU: what has befallen them befalls the tests.
"""

import argparse
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from vocab.diag import AnyFigures, Begun, Unmeasured

if TYPE_CHECKING:
    from engine.diag.bench import Bench

TESTS = ("open", "exact", "memory", "copies", "rate", "allreduce", "burn")
NO_TORCH = "PyTorch is not installed here: pip install 'corral[engine]'"


def _measures(burn_s: float) -> "dict[str, Callable[[Bench], AnyFigures]]":
    """The tests by name. Raises ImportError without PyTorch."""
    from engine.diag import allreduce, burn, copies, exact, memory, opening, rate

    return {
        opening.TEST: opening.measure,
        exact.TEST: exact.measure,
        memory.TEST: memory.measure,
        copies.TEST: copies.measure,
        rate.TEST: rate.measure,
        allreduce.TEST: allreduce.measure,
        burn.TEST: lambda bench: burn.measure(bench, burn_s),
    }


def run(tests: list[str], device: str, faults: list[str], burn_s: float) -> Iterator[AnyFigures]:
    """The figures of these tests, each after its ``Begun``."""
    yield Begun(test=tests[0])  # loading the library is part of the first
    try:
        measures = _measures(burn_s)
        from engine.diag.bench import Bench
    except ImportError:
        yield from (Unmeasured(test=test, why=NO_TORCH) for test in tests)
        return
    bench = Bench(device, is_corrupt="corrupt" in faults)
    for test in tests:
        yield Begun(test=test)
        if "hang" in faults:
            signal.pause()
        if "lost" in faults:
            yield Unmeasured(test=test, why="CUDA did not open it: GPU is lost", error="GPU is lost")
            continue
        try:
            yield measures[test](bench)
        except RuntimeError as error:  # CUDA's errors, out of memory among them: figures, not our bug
            words = str(error).splitlines()[0]
            yield Unmeasured(test=test, why=words, error=words)


def _end_with_parent() -> None:
    """Standard input is a pipe of the one who started this: when it ends, nobody reads figures any more."""
    kind = os.fstat(0).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        os.read(0, 1)
        os._exit(1)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="engine.diag", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--fault", action="append", default=[], choices=("lost", "corrupt", "hang"))
    parser.add_argument("--burn-s", type=float, default=180.0)
    parser.add_argument("tests", nargs="+", choices=TESTS, metavar="TEST")
    options = parser.parse_args()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pipe = os.dup(1)
    os.dup2(2, 1)  # what a library prints belongs in the log
    for figures in run(options.tests, options.device, options.fault, options.burn_s):
        os.write(pipe, msgspec.json.encode(figures) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
