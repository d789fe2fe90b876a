"""The DCGM source when all is well, when something breaks, and when there is no DCGM: in its real child process."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.judge import Judge
from agent.sources.dcgm.sight import DcgmSettings, look
from agent.sources.dcgm.source import DcgmSource
from tests.agent.sources.collector import running
from tests.dcgm.test_source import FAST, full, source_at
from tests.fakes.dcgm import board
from tests.fakes.dcgm.host import LOST, OK, FakeHost
from tests.fakes.dcgm.place import Place, stand_in
from tests.programs import need
from vocab.clock import SystemClock
from vocab.messages import EventItem
from vocab.observations import Check, DriverCall, DriverEvent, GpuSample, SourceState

V3, V4 = (Path(__file__).parents[2] / "fakes" / "dcgm" / name for name in ("v3", "v4"))


@pytest.fixture
def place() -> Iterator[Place]:
    with stand_in() as found:
        yield found


@pytest.fixture
def host(place: Place) -> FakeHost:
    assert place.host is not None
    return place.host


def state_is(word: str, error: str = "") -> Any:
    return lambda one: one.state == word and (one.error or "").startswith(error)


def of(number: int, wanted: Any = lambda _: True) -> Any:
    return lambda one: one.gpu == board.uuid(number) and wanted(one)


def child_pids() -> list[int]:
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in pids if b"dcgm.child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


# all is well


async def test_a_healthy_board_reads_as_it_is(place: Place, tmp_path: Path) -> None:
    async with running(source_at(place, tmp_path)) as found:
        sample = await found.find(GpuSample, of(0, lambda one: one.readings and one.readings.sm_active_ratio))
        readings = sample.readings
        assert readings is not None
        assert (readings.temperature_c, readings.power_w, readings.memory_used_bytes) == (29.0, 68.92, 480 * 2**20)
        assert (readings.sm_clock_hz, readings.energy_j, readings.power_violation_s) == (1.98e9, 123456.789, 2.0)
        assert (readings.sm_active_ratio, readings.tensor_active_ratio) == (0.915, 0.4425)
        assert (readings.pcie_tx_bytes_per_s, readings.ecc_mode, readings.recovery_action) == (1e6, 1, 0)
        assert sample.pci == "0000:1b:00"
        assert sample.errors == {"fan_ratio": "NOT_SUPPORTED"} | dict.fromkeys(
            ("retired_pages_sbe", "retired_pages_dbe", "retirement_pending"), "NOT_SUPPORTED"
        )


async def test_what_no_gpu_supports_is_learnt_and_not_asked_again(place: Place, host: FakeHost, tmp_path: Path) -> None:
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, full)
        host.calls.clear()
        after = len(found.seen)
        await found.find(GpuSample, lambda _: host.calls["values"] > 2, after=after)
        (session,) = host.sessions
        watched = {field for _, fields in session.fields.values() for field in fields}
        assert watched.isdisjoint(board.NOT_SUPPORTED)
        after = len(found.seen)
        sample = await found.find(GpuSample, after=after)
        assert sample.errors["fan_ratio"] == "NOT_SUPPORTED"


async def test_a_unix_socket_is_an_address_like_another(tmp_path: Path) -> None:
    with stand_in(4, tmp_path / "engine.socket") as place:
        assert place.address.startswith("unix://")
        async with running(source_at(place, tmp_path)) as found:
            await found.find(GpuSample, full)


@pytest.mark.parametrize("socket", [False, True])
async def test_a_release_that_only_has_the_newest_connect_is_reached_by_it(tmp_path: Path, socket: bool) -> None:
    gone = {"CORRAL_FAKE_DCGM_GONE": "dcgmConnect_v2"}
    with stand_in(4, tmp_path / "engine.socket" if socket else None) as place:
        async with running(source_at(place, tmp_path, environment=gone)) as found:
            await found.find(GpuSample, full)


async def test_the_child_ends_with_its_source(place: Place, tmp_path: Path) -> None:
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample)
        assert len(child_pids()) == 1
    assert child_pids() == []


# something breaks


async def test_a_lost_gpu_is_an_error_though_its_values_have_status_0(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, of(3, full))
        host.gpus[3].status = LOST
        lost = await found.find(GpuSample, of(3, lambda one: one.error))
        assert (lost.error, lost.readings) == ("GPU_IS_LOST", None)
        after = len(found.seen)
        await found.find(GpuSample, of(4, full), after=after)
        assert not any(one.result == "problem" for one in found.all(Check))


async def test_a_gpu_that_was_lost_before_the_start_is_an_error_too(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    host.gpus[3].status = LOST
    async with running(source_at(place, tmp_path)) as found:
        assert (await found.find(GpuSample, of(3))).error == "GPU_IS_LOST"
        await found.find(GpuSample, of(4, full))
        host.gpus[3].status = OK
        await found.find(GpuSample, of(3, full))


@pytest.mark.parametrize(
    ("field", "name", "blank", "why"),
    [
        (1002, "sm_active_ratio", 140737488355328.0, "BLANK"),
        (1004, "tensor_active_ratio", 140737488355330.0, "NOT_SUPPORTED"),
        (1009, "pcie_tx_bytes_per_s", 9223372036854775792, "BLANK"),
        (311, "ecc_uncorrectable", 9223372036854775793, "NOT_FOUND"),
        (252, "memory_used_bytes", 2147483632, "BLANK"),
        (396, "remap_pending", 2147483635, "NOT_PERMISSIONED"),
    ],
)
async def test_a_blank_is_none_and_says_why(
    place: Place, host: FakeHost, tmp_path: Path, field: int, name: str, blank: float, why: str
) -> None:
    host.gpus[0].values[field] = blank
    async with running(source_at(place, tmp_path)) as found:
        sample = await found.find(GpuSample, of(0, lambda one: full(one) and one.errors.get(name) == why))
        assert getattr(sample.readings, name) is None
        assert sample.readings is not None
        assert sample.readings.power_w == 68.92


async def test_counters_that_another_tool_holds_leave_all_other_readings(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    host.held = True
    async with running(source_at(place, tmp_path)) as found:
        degraded = await found.find(SourceState, state_is("degraded", "PROFILING_LIBRARY_ERROR: "))
        assert "another tool" in (degraded.error or "")
        sample = await found.find(GpuSample, of(0, full))
        assert sample.readings is not None
        assert sample.readings.sm_active_ratio is None
        assert sample.errors["sm_active_ratio"] == "PROFILING_LIBRARY_ERROR"
        assert sample.readings.temperature_c == 29.0


async def test_a_field_that_the_release_does_not_know_is_left_out_and_told_once(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    host.unknown = {153}
    async with running(source_at(place, tmp_path)) as found:
        degraded = await found.find(SourceState, state_is("degraded"))
        assert degraded.unsupported == ("margin_c",)
        assert "DCGM 4.6.0" in (degraded.error or "")
        sample = await found.find(GpuSample, full)
        assert sample.readings is not None
        assert sample.readings.margin_c is None
        assert len(found.all(SourceState)) == 2  # up, then degraded; no more


async def test_a_host_engine_that_goes_and_comes_back_is_watched_anew(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, full)
        host.stop()
        down = await found.find(SourceState, state_is("down"))
        assert (down.error or "").partition(":")[0] in {"CONNECTION_NOT_VALID", "ENGINE_NOT_FOUND"}
        assert found.all(DriverCall) == []
        after = len(found.seen)
        host.start()
        await found.find(SourceState, state_is("up"), after=after)
        sample = await found.find(GpuSample, full, after=after)
        assert sample.errors.get("temperature_c") is None


async def test_an_engine_that_does_not_answer_is_down_and_no_call_of_the_driver(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    async with running(source_at(place, tmp_path, hang_after_s=0.3)) as found:
        await found.find(GpuSample, full)
        with host.hang("values"):
            await found.find(SourceState, state_is("down", "HUNG: "))
            assert found.all(DriverCall) == []
            after = len(found.seen)
        await found.find(SourceState, state_is("up"), after=after)
        await found.find(GpuSample, full, after=after)


async def test_a_health_check_that_hangs_holds_up_no_reading(place: Place, host: FakeHost, tmp_path: Path) -> None:
    host.fail["health_set"] = -33
    async with running(source_at(place, tmp_path)) as found:
        await found.find(SourceState, state_is("degraded", "MODULE_NOT_LOADED: "))
        del host.fail["health_set"]
        await found.find(Check)
        with host.hang("health_check"):
            after = len(found.seen)
            await found.find(GpuSample, full, after=after)


async def test_values_that_stand_still_are_none(place: Place, host: FakeHost, tmp_path: Path) -> None:
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, of(0, full))
        host.stand_at = time.time() - 60
        sample = await found.find(GpuSample, of(0, lambda one: "temperature_c" in one.errors))
        assert sample.errors["temperature_c"] == "STALE_DATA"
        assert sample.readings is not None
        assert sample.readings.temperature_c is None
        assert sample.readings.pcie_width_max == 16  # read each hour


async def test_bindings_of_another_release_are_told_so(place: Place, tmp_path: Path) -> None:
    async with running(source_at(Place(V3, place.address), tmp_path)) as found:
        down = await found.find(SourceState)
        assert (down.state, (down.error or "").partition(":")[0]) == ("down", "VER_MISMATCH")


async def test_a_policy_that_somebody_has_set_stays(place: Place, host: FakeHost, tmp_path: Path) -> None:
    for gpu in host.gpus:
        gpu.policy = 0x48
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, full)
        assert {gpu.policy for gpu in host.gpus} == {0x48}
        host.inject(2, board.XID, 31)
        assert (await found.find(DriverEvent)).gpu == board.uuid(2)


@pytest.mark.parametrize("unset", [0, 0x7FFFFFF0])
async def test_a_policy_that_nobody_has_set_is_ours_and_has_no_action(
    place: Place, host: FakeHost, tmp_path: Path, unset: int
) -> None:
    for gpu in host.gpus:
        gpu.policy = unset
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, full)
        assert {gpu.policy for gpu in host.gpus} == {0x61}
        host.inject(2, 319, 2)
        event = await found.find(DriverEvent)
        assert (event.gpu, event.type, event.data) == (board.uuid(2), "ecc", 2)


async def test_a_policy_without_xids_leaves_them_to_field_230(place: Place, host: FakeHost, tmp_path: Path) -> None:
    for gpu in host.gpus:
        gpu.policy = 0x1
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, full)
        host.inject(2, board.XID, 31)
        assert (await found.find(DriverEvent, lambda one: one.type == "xid")).data == 31


async def test_an_xid_of_before_the_start_is_no_news_to_dcgm_3(tmp_path: Path) -> None:
    with stand_in(3) as place:
        assert place.host is not None
        place.host.inject(1, board.XID, 31)
        async with running(source_at(place, tmp_path)) as found:
            await found.find(GpuSample, full)
            place.host.inject(2, board.XID, 13)
            event = await found.find(DriverEvent)
            assert (event.gpu, event.data) == (board.uuid(2), 13)


# what the judge makes of it


async def test_a_host_engine_that_is_gone_is_an_alert_of_the_monitoring_and_of_no_gpu(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    judge, events = Judge("node-a"), []
    async with running(source_at(place, tmp_path)) as found:
        await found.find(GpuSample, full)
        host.stop()
        await found.find(SourceState, state_is("down"))
    for second, observation in enumerate(found.seen):
        events += judge.observe(observation, second * 0.01)
    events += judge.tick(1000.0)
    assert {(item.event.code, item.event.gpu) for item in events if isinstance(item, EventItem)} == {
        ("monitor_unreachable", None)
    }


async def test_a_failed_watch_is_looked_into_and_holds_nothing(place: Place, host: FakeHost, tmp_path: Path) -> None:
    judge, events = Judge("node-a"), []
    async with running(source_at(place, tmp_path)) as found:
        await found.find(Check)
        host.gpus[5].incidents = [(0x40, 10, 9)]
        check = await found.find(Check, lambda one: one.result == "problem")
    events += judge.observe(check, 1.0)
    (item,) = events
    assert isinstance(item, EventItem)
    event = item.event
    assert (event.code, event.gpu, event.device) == ("check_failed", board.uuid(5), "check:dcgm_inforom")
    assert (event.severity.value, event.recovery.value) == ("warning", "investigate")
    assert event.fields["check_code"] == "DCGM_FR_CORRUPT_INFOROM"


# there is no DCGM


async def test_a_node_without_dcgm_says_nothing_unless_it_was_asked_for(tmp_path: Path) -> None:
    for engine, said in (("auto", False), ("127.0.0.1:1", True)):
        settings = DcgmSettings(engine=engine, bindings=tmp_path)
        async with running(DcgmSource("node-a", settings, tmp_path, SystemClock())) as found:
            if said:
                down = await found.find(SourceState)
                assert (down.error or "").startswith("BINDINGS_NOT_FOUND: ")
                assert "dcgm_bindings" in (down.error or "")
        sight = await look(settings)
        assert sight.error == "BINDINGS_NOT_FOUND"
        assert "datacenter-gpu-manager" in sight.advice
        assert bool(found.seen) is said


async def test_bindings_without_their_library_are_a_source_down(place: Place, tmp_path: Path) -> None:
    source = source_at(place, tmp_path, environment={"CORRAL_FAKE_DCGM_NO_LIBRARY": "1"})
    async with running(source) as found:
        assert ((await found.find(SourceState)).error or "").startswith("LIBRARY_NOT_FOUND: ")


async def test_bindings_that_cannot_be_imported_are_a_source_down(place: Place, tmp_path: Path) -> None:
    (tmp_path / "dcgm_agent.py").write_text("import dcgm_structs\n")
    async with running(source_at(Place(tmp_path, place.address), tmp_path)) as found:
        assert ((await found.find(SourceState)).error or "").startswith("BINDINGS_UNUSABLE: ")


# embedded


async def test_an_embedded_engine_is_read_like_another_and_its_hangs_are_the_drivers(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    source = source_at(
        Place(place.bindings, "embedded"),
        tmp_path,
        hang_after_s=0.3,
        environment={"CORRAL_FAKE_DCGM_EMBEDDED": place.address},
    )
    async with running(source) as found:
        await found.find(GpuSample, full)
        with host.hang("values"):
            call = await found.find(DriverCall)
            assert (call.gpu, call.call, call.state) == (None, "dcgmEntitiesGetLatestValues", "started")
        await found.find(DriverCall, lambda one: one.state == "returned")


async def test_an_embedded_engine_is_refused_beside_a_running_one(place: Place, tmp_path: Path) -> None:
    program = Path(shutil.copy(need("sleep", "apt-get install coreutils"), tmp_path / "nv-hostengine"))
    with subprocess.Popen([program, "60"]) as engine:
        try:
            async with running(source_at(Place(place.bindings, "embedded"), tmp_path)) as found:
                down = await found.find(SourceState)
                assert (down.state, (down.error or "").partition(":")[0]) == ("down", "ENGINE_RUNNING")
                assert child_pids() == []
        finally:
            engine.kill()


async def test_counters_of_a_board_before_hopper_are_left_to_other_tools(
    place: Place, host: FakeHost, tmp_path: Path
) -> None:
    for gpu in host.gpus:
        gpu.values[63] = 8 << 16
    settings = DcgmSettings(engine=place.address, bindings=place.bindings)
    async with running(DcgmSource("node-a", settings, tmp_path, SystemClock(), **FAST)) as found:
        await found.find(GpuSample, full)
        (session,) = host.sessions
        assert board.PROFILING.isdisjoint(field for _, fields in session.fields.values() for field in fields)
        assert {one.state for one in found.all(SourceState)} == {"up"}
