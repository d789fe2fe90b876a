"""``dcgmi diag`` as an active check, through the bindings, in a process of its own.

    python -m agent.sources.dcgm.diag --bindings FOLDER --address HOST:PORT --level medium

prints a Check a line (JSON): ``dcgm_diag_memory`` of each GPU and test. Passed is pass, failed and warned are
a problem, skipped and not run are unknown; a diagnostic that is not there or cannot run is unknown, never a
failed GPU. From medium on the GPUs must be idle: that is the caller's to see to.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent.calls import CallTable
from agent.ending import gone, kill
from agent.sources.child import CallFailed
from agent.sources.dcgm.bindings import Caller, load
from agent.sources.dcgm.engine import FE_GPU, Engine
from agent.sources.dcgm.names import error_name, explain
from agent.sources.dcgm.sight import DcgmSettings, look
from vocab.observations import Check

CHECK = "dcgm_diag"
RUN, STOP = "dcgmRunDiagnostic", "dcgmStopDiagnostic"
# level -> (DCGM's number, seconds that it may take: twice what NVIDIA's guide says)
LEVELS: dict[str, tuple[int, float]] = {
    "quick": (10, 120.0),
    "medium": (20, 600.0),
    "long": (30, 3_600.0),
    "extended": (40, 14_400.0),
}
STOP_S = 5.0  # for the engine to be told that its diagnostic is to end
MARGIN_S = 10.0  # for start, connection and end of the process
PASS, WARN, FAIL = 0, 2, 3
RESULTS = {PASS: "pass", WARN: "problem", FAIL: "problem"}  # skipped (1) and not run (4) are unknown
MOST_TEXT = 300

# DCGM 3 tells tests apart by their place only.
OF_NODE = ("denylist", "nvml_library", "cuda_main_library", "cuda_runtime_library", "permissions", "persistence_mode",
           "environment", "page_retirement", "graphics_processes", "inforom", "fabric_manager")  # fmt: skip
OF_GPU = ("memory", "diagnostic", "pcie", "sm_stress", "targeted_stress", "targeted_power", "memory_bandwidth",
          "memtest", "pulse_test", "eud")  # fmt: skip


class Outcome(msgspec.Struct, frozen=True):
    """One test of one GPU (None: of the node)."""

    test: str
    gpu: int | None
    result: int
    errors: tuple[tuple[int, str], ...] = ()  # code and message


async def diagnose(settings: DcgmSettings, level: str, gpus: Collection[str] = ()) -> tuple[Check, ...]:
    """Run this level on these GPUs (UUIDs; all, if none is named) and wait for its end. Cancelled, it stops it."""
    sight = await look(settings)
    if sight.error or sight.bindings is None:
        return (_unknown(sight.error or "BINDINGS_NOT_FOUND"),)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent.sources.dcgm.diag", "--bindings", str(sight.bindings)),
        *("--address", settings.address, "--level", level, *gpus),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LEVELS[level][1] + 2 * MARGIN_S):
            out, _ = await process.communicate()
    except TimeoutError:
        return (_unknown("TIMEOUT"),)
    finally:
        if process.returncode is None:
            process.terminate()
            await gone(process, STOP_S)
        await kill(process)
    found = tuple(msgspec.json.decode(line, type=Check) for line in out.splitlines())
    return found or (_unknown("CHILD_DIED"),)


def _unknown(error: str) -> Check:
    return Check(at=time.time(), check=CHECK, result="unknown", text=explain(error))


# inside the process


def run(folder: Path, address: str, level: str, gpus: Collection[str]) -> list[Check]:
    """Connect and run it. Never raises for DCGM's errors."""
    with tempfile.TemporaryDirectory() as place:
        table = CallTable.create(Path(place) / "calls", 2)
        try:
            bindings = load(folder)
            engine = Engine(Caller(bindings, table.slot(0)), address)
            known = {one.number: one.gpu.uuid for one in engine.gpus() if one.gpu}
            chosen = {number: uuid for number, uuid in known.items() if not gpus or uuid in gpus}
            group, _ = engine.group(f"corral-diag-{os.getpid()}", chosen)
            response = _respond(engine, Caller(bindings, table.slot(1)), group, level)
        except CallFailed as failed:
            return [_unknown(failed.error)]
    at = time.time()
    return [_check(outcome, known.get(outcome.gpu) if outcome.gpu is not None else None, at)
            for outcome in outcomes(response)]  # fmt: skip


def _respond(engine: Engine, other: Caller, group: Any, level: str) -> Any:
    """What the engine answers; a diagnostic that takes too long is stopped. Raises CallFailed."""
    number, limit_s = LEVELS[level]
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(engine.call(RUN, engine.handle, group, number))
        except CallFailed as failed:
            found.append(failed)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        thread.join(limit_s)  # or until we are told to end
    finally:
        if not found and other.has(STOP):
            other(STOP, engine.handle)
    if not found:
        raise CallFailed(RUN, "TIMEOUT")
    if isinstance(found[0], CallFailed):
        raise found[0]
    return found[0]


def outcomes(response: Any) -> Iterator[Outcome]:
    """The tests of a response of DCGM 3 (by place) or 4 (by name)."""
    return _of_4(response) if hasattr(response, "numTests") else _of_3(response)


def _of_4(response: Any) -> Iterator[Outcome]:
    for test in response.tests[: response.numTests]:
        name = test.name.strip().lower().replace(" ", "_")
        errors = [response.errors[index] for index in test.errorIndices[: test.numErrors]]
        for index in test.resultIndices[: test.numResults]:
            result = response.results[index]
            mine = tuple((error.code, error.msg) for error in errors if _same(error.entity, result.entity))
            gpu = int(result.entity.entityId) if result.entity.entityGroupId == FE_GPU else None
            yield Outcome(name, gpu, int(result.result), mine)


def _same(one: Any, other: Any) -> bool:
    return (one.entityGroupId, one.entityId) == (other.entityGroupId, other.entityId)


def _of_3(response: Any) -> Iterator[Outcome]:
    for name, test in zip(OF_NODE, response.levelOneResults[: response.levelOneTestCount], strict=False):
        yield Outcome(name, None, int(test.result), _errors_of_3(test))
    for each in response.perGpuResponses[: response.gpuCount]:
        for name, test in zip(OF_GPU, each.results, strict=False):
            yield Outcome(name, int(each.gpuId), int(test.result), _errors_of_3(test))


def _errors_of_3(test: Any) -> tuple[tuple[int, str], ...]:
    """One error up to 3.1, five from 3.3 on."""
    errors = [test.error] if hasattr(test.error, "code") else list(test.error)
    return tuple((int(error.code), error.msg) for error in errors if error.code)


def _check(outcome: Outcome, gpu: str | None, at: float) -> Check:
    result = RESULTS.get(outcome.result, "unknown")
    name = f"{CHECK}_{outcome.test}"
    if result != "problem":
        return Check(at=at, check=name, gpu=gpu, result=result)
    code = error_name(outcome.errors[0][0]) if outcome.errors else None
    told = "; ".join(message.strip() or error_name(number) for number, message in outcome.errors)
    text = told[:MOST_TEXT] or f"DCGM's test {outcome.test} did not pass"
    return Check(at=at, check=name, gpu=gpu, result=result, code=code, text=text, fatal=outcome.result == FAIL)


def _told_to_end(*_: object) -> None:
    raise CallFailed(RUN, "STOPPED")


def main() -> int:
    """Print the checks; exit 0 whatever they say."""
    parser = argparse.ArgumentParser(prog="agent.sources.dcgm.diag", description=__doc__)
    parser.add_argument("--bindings", type=Path, required=True, help="the folder of dcgm_agent.py")
    parser.add_argument("--address", required=True, help="HOST:PORT or unix://PATH of a host engine")
    parser.add_argument("--level", choices=LEVELS, default="quick")
    parser.add_argument("gpus", nargs="*", metavar="UUID", help="only these GPUs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _told_to_end)
    pipe = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints belongs in the log
    for check in run(options.bindings, options.address, options.level, options.gpus):
        os.write(pipe, msgspec.json.encode(check) + b"\n")
    return 0


if __name__ == "__main__":
    os._exit(main())  # not sys.exit: a thread may be inside the library
