"""Runs with a program that is well, absent, hanging, dying or talking nonsense; and with faults of virtual GPUs."""

import asyncio
import os

import pytest

from agent.config import AgentConfig
from agent.diag.bench import Bench, of_gpu
from agent.diag.child import Child, environment
from agent.diag.diag import Diag
from agent.diag.pace import Tokens
from agent.diag.plan import DEADLINE_S
from agent.diag.watch import Watch
from agent.sources.dcgm.sight import DcgmSettings
from tests.agent.diag.made import FIRST, SECOND, Ground, Heard, program, sample
from tests.fakes.dcgm import board
from tests.fakes.dcgm.place import stand_in
from vocab.clock import SystemClock
from vocab.diag import AnyFigures, DiagRequest, Ended, Grade, Started, Unmeasured
from vocab.errors import InputError, Refused


def diag(ground: Ground, way: str = "good") -> Diag:
    return Diag(ground, program(way), SystemClock())


async def ran(ground: Ground, grade: Grade = Grade.QUICK, way: str = "good", gpus=(FIRST,)) -> Heard:
    heard = Heard()
    await diag(ground, way).run(DiagRequest(gpus=gpus, grade=grade), heard)
    return heard


async def test_a_healthy_gpu_passes_quick_and_all_of_it_is_told_in_order():
    heard = await ran(Ground())
    assert heard.results() == dict.fromkeys(
        ("presence", "ecc", "remap", "fabric", "pcie", "diag_open", "canary"), "pass"
    ) | {"links": "unknown"}
    assert [told.test for told in heard.told if isinstance(told, Started)] == ["open", "exact"]
    assert heard.told[-1] == Ended()


async def test_a_gpu_that_does_not_open_is_told_once_and_the_other_tests_are_unknown():
    ground = Ground()
    ground.faults[FIRST] = ("lost",)
    heard = await ran(ground)
    found = [(each.check, each.result) for each in ground.judged]
    assert found == [("diag_open", "problem"), ("canary", "unknown")]
    assert heard.told[-1] == Ended()


async def test_the_judge_hears_what_was_tried_and_not_again_what_was_read():
    ground = Ground()
    ground.samples[FIRST] = sample(ecc_uncorrectable=1)
    await ran(ground)
    assert [check.check for check in ground.judged] == ["diag_open", "canary"]


@pytest.mark.parametrize(
    ("fault", "check", "code"),
    [("lost", "diag_open", "gpu_lost"), ("corrupt", "canary", "silent_corruption")],
)
async def test_a_fault_of_a_virtual_gpu_shows(fault, check, code):
    ground = Ground()
    ground.faults[FIRST] = (fault,)
    await ran(ground)
    assert (check, code) in {(each.check, each.code) for each in ground.judged if each.result == "problem"}


@pytest.mark.parametrize("way", ["absent", "dies-in:open", "nonsense"])
async def test_without_a_program_that_works_nothing_is_known_and_nothing_failed(way):
    ground = Ground()
    await ran(ground, Grade.MEDIUM, way)
    tried = ("diag_open", "canary", "diag_memory", "diag_copies", "diag_rate")
    assert {each.check: each.result for each in ground.judged} == dict.fromkeys(tried, "unknown")


async def test_a_program_that_is_not_there_says_why_nothing_is_known():
    ground = Ground()
    await Diag(ground, ("/nowhere/python",), SystemClock()).run(DiagRequest(gpus=(FIRST,)), Heard())
    assert {each.result for each in ground.judged} == {"unknown"}


async def test_a_partitioned_gpu_is_left_alone_and_nothing_is_known_of_it():
    ground = Ground()
    ground.device, ground.samples[FIRST] = "cuda", sample(mig_mode=1)
    await ran(ground)
    assert {(each.check, each.result) for each in ground.judged} == {("diag_open", "unknown"), ("canary", "unknown")}


async def test_medium_and_burn_add_their_tests():
    assert "diag_memory" in (await ran(Ground(), Grade.MEDIUM)).results()
    assert (await ran(Ground(), Grade.BURN)).results()["diag_burn"] == "pass"


async def test_several_gpus_add_a_sum_over_all_of_them():
    heard = await ran(Ground(), Grade.MEDIUM, gpus=())
    assert heard.results(SECOND)["canary"] == "pass"
    assert heard.results(None) == {"diag_allreduce": "unknown"}


async def test_a_gpu_in_service_is_refused_before_anything_is_told():
    ground, heard = Ground(), Heard()
    ground.kept = set()
    with pytest.raises(Refused, match="in service"):
        await diag(ground).run(DiagRequest(gpus=(FIRST,), grade=Grade.MEDIUM), heard)
    assert heard.told == []


async def test_a_gpu_that_is_not_here_is_wrong_input():
    with pytest.raises(InputError, match="GPU-cccc"):
        await diag(Ground()).run(DiagRequest(gpus=("GPU-cccc",)), Heard())


async def test_a_second_run_at_the_same_time_is_refused_and_the_first_can_be_ended():
    ground, heard = Ground(), Heard()
    hung = diag(ground, "silent")
    first = asyncio.ensure_future(hung.run(DiagRequest(gpus=(FIRST,)), heard))
    async with asyncio.timeout(60):
        while not any(isinstance(told, Started) for told in heard.told):
            await asyncio.sleep(0.01)
        with pytest.raises(Refused, match="run on this node already"):
            await hung.run(DiagRequest(gpus=(FIRST,)), Heard())
        (pid,) = hung.pids()
        hung.stop("a repair needs the driver")
        await first
    assert {each.text for each in ground.judged} == {"a repair needs the driver"}
    assert hung.pids() == frozenset()
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_run_that_is_ended_begins_with_no_other_gpu():
    ground = Ground()
    hung = diag(ground, "silent")
    run = asyncio.ensure_future(hung.run(DiagRequest(gpus=(FIRST, SECOND)), Heard()))
    async with asyncio.timeout(60):
        while not hung.pids():
            await asyncio.sleep(0.01)
        hung.stop("a repair needs the driver")
        await run
    assert {each.gpu for each in ground.judged} == {FIRST, SECOND}
    assert {each.text for each in ground.judged} == {"a repair needs the driver"}


async def test_who_goes_away_takes_the_program_with_them():
    heard = Heard()
    hung = diag(Ground(), "silent")
    run = asyncio.ensure_future(hung.run(DiagRequest(gpus=(FIRST,)), heard))
    async with asyncio.timeout(60):
        while not hung.pids():
            await asyncio.sleep(0.01)
        (pid,) = hung.pids()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert not _lives(pid)


async def test_a_test_that_hangs_is_killed_by_its_deadline_and_what_was_measured_before_stays():
    ground = Ground()
    short = Diag(ground, program("hangs-in:exact"), SystemClock(), {**DEADLINE_S, "exact": 0.2})
    await short.run(DiagRequest(gpus=(FIRST,), grade=Grade.MEDIUM), Heard())
    assert [(each.check, each.result) for each in ground.judged][:2] == [("diag_open", "pass"), ("canary", "unknown")]
    assert "did not end within" in ground.judged[1].text
    assert {each.result for each in ground.judged[1:]} == {"unknown"}


# -- validations ----------------------------------------------------------------------------------------


async def test_a_validation_runs_medium_on_a_gpu_that_is_held_and_empty():
    found = await diag(Ground()).validate(FIRST)
    assert "diag_memory" in {check.check for check in found}


async def test_a_validation_of_a_gpu_in_use_runs_quick_alone():
    ground = Ground()
    ground.users[FIRST] = ("chat-0",)
    assert [check.check for check in await diag(ground).validate(FIRST)] == ["diag_open", "canary"]
    assert ground.judged == []  # the validation tells the judge itself


async def test_a_validation_tells_problems_first():
    ground = Ground()
    ground.faults[FIRST] = ("corrupt",)
    found = await diag(ground).validate(FIRST)
    assert (found[0].check, found[0].result) == ("canary", "problem")


# -- DCGM -----------------------------------------------------------------------------------------------


async def test_a_dcgm_that_is_not_there_is_unknown(tmp_path):
    ground = Ground()
    ground.dcgm = DcgmSettings(engine="localhost:1", bindings=tmp_path)
    await ran(ground)
    assert [(each.check, each.result, each.node) for each in ground.judged if each.check.startswith("dcgm")] == [
        ("dcgm_diag", "unknown", "n1")
    ]


@pytest.mark.parametrize("release", [3, 4])
async def test_dcgms_diagnostics_are_checks_too_at_the_level_of_the_grade(release):
    with stand_in(release) as place:
        ground = Ground()
        ground.dcgm = DcgmSettings(engine=place.address, bindings=place.bindings)
        ground.samples = {uuid: sample(uuid) for uuid in (board.uuid(0), board.uuid(1))}
        ground.kept, ground.users = set(ground.samples), dict.fromkeys(ground.samples, ())
        place.host.diag = [("memory", 0, 0, 0), ("memory", 1, 3, 52)]
        await ran(ground, Grade.MEDIUM, gpus=())
    told = {(each.gpu, each.result) for each in ground.judged if each.check == "dcgm_diag_memory"}
    assert told == {(board.uuid(0), "pass"), (board.uuid(1), "problem")}


@pytest.mark.parametrize("release", [3, 4])
async def test_a_hold_that_is_lifted_stops_dcgms_diagnostic_in_its_engine(release):
    with stand_in(release) as place, place.host.hang("diag"):
        ground = Ground()
        ground.dcgm = DcgmSettings(engine=place.address, bindings=place.bindings)
        ground.samples = {uuid: sample(uuid) for uuid in (board.uuid(0), board.uuid(1))}
        ground.kept, ground.users = set(ground.samples), dict.fromkeys(ground.samples, ())
        run = asyncio.ensure_future(ran(ground, Grade.MEDIUM, gpus=()))
        async with asyncio.timeout(60):
            while not place.host.calls["diag"]:
                await asyncio.sleep(0.01)
            ground.kept.clear()
            await run
        assert place.host.calls["stop_diag"] == 1
    (told,) = (each for each in ground.judged if each.check.startswith("dcgm"))
    assert (told.result, "in service" in told.text) == ("unknown", True)


@pytest.mark.parametrize(("dcgm", "asked"), [("auto", True), ("host:5555", True), ("off", False), ("embedded", False)])
def test_a_real_gpu_asks_dcgm_where_a_host_engine_may_run(tmp_path, dcgm, asked):
    config = AgentConfig(node="n1", controller="http://c", state_dir=tmp_path, run_dir=tmp_path, dcgm=dcgm)
    bench = of_gpu(config)
    assert (bench.device, bench.dcgm is not None) == ("cuda", asked)


# -- what ends a run early ------------------------------------------------------------------------------


class Gathered:
    def __init__(self) -> None:
        self.figures: list[AnyFigures] = []

    async def __call__(self, figures: AnyFigures) -> None:
        self.figures.append(figures)


async def test_a_neighbour_that_slows_down_ends_the_run_and_is_named():
    counts = [{"chat-0": Tokens(s, n)} for s, n in ((1.0, 100), (2.0, 200), (3.1, 300), (4.2, 400))]

    async def count():
        return counts.pop(0)

    watch = Watch(count, lambda: None, lambda: None, window_s=0.0)
    await watch.before()
    child, gathered = Child(program("silent"), (), Bench(device="cpu"), ("memory",)), Gathered()
    run = asyncio.ensure_future(child.run(gathered))
    async with asyncio.timeout(60):
        while not gathered.figures:
            await asyncio.sleep(0.01)
        await watch.neighbours(child)
        await run
    assert isinstance(gathered.figures[-1], Unmeasured)
    assert "chat-0 slowed down" in gathered.figures[-1].why


async def test_a_hold_that_is_lifted_meanwhile_ends_the_run():
    ground, heard = Ground(), Heard()
    run = asyncio.ensure_future(
        diag(ground, "hangs-in:memory").run(DiagRequest(gpus=(FIRST, SECOND), grade=Grade.MEDIUM), heard)
    )
    async with asyncio.timeout(60):
        while Started(gpu=FIRST, test="memory") not in heard.told:
            await asyncio.sleep(0.01)
        ground.kept = set()
        await run
    assert heard.results(FIRST)["canary"] == "pass"
    assert heard.results(FIRST)["diag_memory"] == "unknown"
    assert heard.results(SECOND)["diag_memory"] == "unknown"
    assert "is in service" in ground.judged[-1].text


async def test_a_burn_that_gets_too_hot_is_ended_and_is_a_problem_of_the_gpu():
    ground = Ground()
    ground.samples[FIRST] = sample(temperature_c=91.0)
    await ran(ground, Grade.BURN, "hangs-in:burn")
    last = ground.judged[-1]
    assert (last.check, last.result, last.code) == ("diag_burn", "problem", "thermal_slowdown")


def test_the_program_sees_only_its_gpus_and_no_secret():
    given = {"PATH": "/bin", "CORRAL_TOKEN_FILE": "/x", "NOTIFY_SOCKET": "/y", "CUDA_VISIBLE_DEVICES": "all"}
    assert environment(given, (FIRST,)) == {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": FIRST, "PYTHONUNBUFFERED": "1"}


async def test_no_program_is_started_while_another_gpu_is_repaired_and_a_validation_is_done_after_it():
    ground = Ground()
    ready = diag(ground)
    await ready.rest("a repair of the node needs the driver")
    with pytest.raises(Refused, match="a repair of the node"):
        await ready.run(DiagRequest(gpus=(FIRST,)), Heard())
    validation = asyncio.ensure_future(ready.validate(FIRST))
    await asyncio.sleep(0)
    assert ready.pids() == frozenset()
    assert not validation.done()
    ready.wake()
    assert "pass" in {check.result for check in await validation}


async def test_a_validation_that_a_repair_has_ended_begins_anew_and_says_nothing_of_the_first_try():
    ground = Ground()
    hung = diag(ground, "silent")
    validation = asyncio.ensure_future(hung.validate(FIRST))
    async with asyncio.timeout(60):
        while not hung.pids():
            await asyncio.sleep(0.01)
        (first,) = hung.pids()
        await hung.rest("a repair of the node needs the driver")
        assert hung.pids() == frozenset()
        assert not _lives(first)
        hung.wake()
        while not hung.pids():
            await asyncio.sleep(0.01)
        assert hung.pids() != frozenset({first})
    validation.cancel()
    await asyncio.gather(validation, return_exceptions=True)
