"""The DCGM source alone, without NVML: the same tests on the stand-ins and on a real host engine.

    DCGM_BINDINGS=/usr/share/datacenter-gpu-manager-4/bindings/python3 DCGM_HOST=localhost:5555 pytest tests/dcgm

The real engine needs GPUs that are injected (no hardware is touched) and takes some test values: use none that
others rely on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.judge import Judge
from agent.probes.sane import clean
from agent.sources.dcgm.sight import DcgmSettings
from agent.sources.dcgm.source import DcgmSource
from agent.sources.dcgm_fields import NAMES
from tests.agent.sources.collector import Collector, running
from tests.fakes.dcgm.place import Place
from vocab.clock import SystemClock
from vocab.errors import InputError, Refused
from vocab.messages import EventItem
from vocab.observations import Check, DriverEvent, GpuSample, NodeSeen, SourceState

FAST = {
    "period_s": 0.2,
    "health_s": 0.5,
    "inventory_s": 0.3,
    "need_after_s": 0.1,
    "alone_after_s": 0.1,
    "look_s": 0.05,
    "retry_s": 0.05,
}
ROW_REMAP_FAILED, XID = 395, 230


def source_at(place: Place, run_dir: Path, **more: Any) -> DcgmSource:
    settings = DcgmSettings(engine=place.address, bindings=place.bindings, profiling="on")
    return DcgmSource("node-a", settings, run_dir, SystemClock(), **{**FAST, **more})


def full(sample: GpuSample) -> bool:
    """Whether the fields have had their first readings."""
    readings = sample.readings
    return readings is not None and None not in {readings.temperature_c, readings.power_w, readings.memory_total_bytes}


def says(uuid: str, result: str) -> Callable[[Check], bool]:
    return lambda one: (one.check, one.gpu, one.result) == ("dcgm_memory", uuid, result)


async def gpus_of(source: DcgmSource, found: Collector) -> tuple[str, ...]:
    await found.find(SourceState, lambda one: one.state != "down")
    completed = source.complete(NodeSeen(at=0.0, boot_id="b"))
    assert isinstance(completed, NodeSeen)
    return tuple(gpu.uuid for gpu in completed.gpus)


async def test_the_inventory_names_the_driver_and_every_gpu(place: Place, tmp_path: Path) -> None:
    source = source_at(place, tmp_path)
    async with running(source) as found:
        uuids = await gpus_of(source, found)
        completed = source.complete(NodeSeen(at=0.0, boot_id="b"))
        assert isinstance(completed, NodeSeen)
        assert len(set(uuids)) == len(uuids) == completed.expected_gpus
        assert completed.driver
        assert all(gpu.pci.count(":") == 2 and gpu.name for gpu in completed.gpus)


async def test_readings_are_in_base_units_and_no_blank_is_among_them(place: Place, tmp_path: Path) -> None:
    source = source_at(place, tmp_path)
    async with running(source) as found:
        for uuid in await gpus_of(source, found):
            sample = await found.find(GpuSample, lambda one, uuid=uuid: one.gpu == uuid and full(one))  # type: ignore[misc]
            assert clean(sample) == sample
            readings = sample.readings
            assert readings is not None
            assert 10 < (readings.temperature_c or 0) < 100
            assert 1 < (readings.power_w or 0) < 1500
            assert (readings.memory_total_bytes or 0) > 2**30
            assert 1e8 < (readings.sm_clock_hz or 0) < 5e9
            given = {name for name in NAMES if getattr(readings, name) is not None}
            assert given.isdisjoint(sample.errors)
            assert sample.source == "dcgm"


async def test_performance_counters_are_ratios(place: Place, tmp_path: Path) -> None:
    async with running(source_at(place, tmp_path)) as found:
        sample = await found.find(GpuSample, lambda one: bool(one.readings and one.readings.sm_active_ratio))
        readings = sample.readings
        assert readings is not None
        for ratio in (readings.sm_active_ratio, readings.tensor_active_ratio, readings.graphics_active_ratio):
            assert ratio is not None
            assert 0 <= ratio <= 1


async def test_a_health_watch_is_a_check_that_its_own_pass_takes_back(place: Place, tmp_path: Path) -> None:
    source = source_at(place, tmp_path)
    async with running(source) as found:
        uuids = await gpus_of(source, found)
        number, uuid = len(uuids) - 1, uuids[-1]
        await found.find(Check, says(uuid, "pass"))
        place.inject(number, ROW_REMAP_FAILED, 1)
        problem = await found.find(Check, says(uuid, "problem"))
        assert problem.code == "DCGM_FR_ROW_REMAP_FAILURE"
        assert problem.fatal
        after = len(found.seen)
        place.inject(number, ROW_REMAP_FAILED, 0)
        await found.find(Check, says(uuid, "pass"), after=after)


async def test_an_xid_is_told_with_its_gpu(place: Place, tmp_path: Path) -> None:
    source = source_at(place, tmp_path)
    async with running(source) as found:
        uuids = await gpus_of(source, found)
        await found.find(GpuSample, full)
        place.inject(1, XID, 43)
        event = await found.find(DriverEvent, lambda one: one.type == "xid")
        assert (event.source, event.gpu, event.data) == ("dcgm", uuids[1], 43)


async def test_a_drill_shows_the_whole_chain_and_every_word_of_it_is_marked(place: Place, tmp_path: Path) -> None:
    source, judge = source_at(place, tmp_path), Judge("node-a", "b")
    async with running(source) as found:
        uuid = (await gpus_of(source, found))[-1]
        await found.find(Check, says(uuid, "pass"))
        source.drill(uuid, ROW_REMAP_FAILED, 1)
        problem = await found.find(Check, says(uuid, "problem"))
        source.drill(uuid, XID, 43)
        told = await found.find(DriverEvent, lambda one: one.type == "xid")
        source.drill(uuid, ROW_REMAP_FAILED, 0)
        assert (problem.drill, told.drill, told.gpu) == (True, True, uuid)
    items = [*judge.observe(problem, problem.at), *judge.observe(told, told.at), *judge.tick(told.at + 10.0)]
    events = [item.event for item in items if isinstance(item, EventItem)]
    assert {event.code for event in events} == {"check_failed", "xid:43"}
    assert all(event.drill and event.injected for event in events), "shown, and nothing follows from it"


async def test_a_drill_without_an_engine_or_of_a_gpu_that_it_does_not_know_is_refused(
    place: Place, tmp_path: Path
) -> None:
    source = source_at(place, tmp_path)
    with pytest.raises(Refused, match="no DCGM host engine"):
        source.drill("GPU-x", XID, 43)
    async with running(source) as found:
        await gpus_of(source, found)
        with pytest.raises(InputError, match="GPU-x"):
            source.drill("GPU-x", XID, 43)


@pytest.mark.parametrize("named", ["localhost", "127.0.0.1"])
async def test_a_port_where_nobody_listens_is_a_source_that_is_down(place: Place, tmp_path: Path, named: str) -> None:
    settings = DcgmSettings(engine=f"{named}:1", bindings=place.bindings)
    async with running(DcgmSource("node-a", settings, tmp_path, SystemClock(), retry_s=0.05)) as found:
        down = await found.find(SourceState)
        assert (down.source, down.state) == ("dcgm", "down")
        assert (down.error or "").startswith("ENGINE_NOT_FOUND: ")
        assert found.all(GpuSample) == []
