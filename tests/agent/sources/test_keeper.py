"""A keeper at rest, renewed and at its end: the driver is shut on purpose, and that is no news of the source."""

import asyncio
from pathlib import Path

from agent.virtual.state import VirtualState
from tests.agent.sources.collector import running
from tests.agent.sources.rig import child_pid, exists, make
from vocab.observations import GpuSample, SourceState


async def test_a_driver_that_is_shut_on_purpose_is_opened_again_and_was_never_down(
    nvml_library: Path, tmp_path: Path
) -> None:
    source = make(nvml_library, VirtualState.create(tmp_path / "virtual.state", "node-a"), tmp_path)
    async with running(source) as found:
        await found.find(GpuSample, lambda _: True)
        [pid] = source.keeper.pids()
        await source.keeper.rest()
        assert not exists(pid)
        assert source.keeper.pids() == frozenset()
        so_far = len(found.seen)
        source.keeper.wake()
        await found.find(GpuSample, lambda _: True, after=so_far)
        assert source.keeper.pids()
        assert {one.state for one in found.seen if isinstance(one, SourceState)} == {"up"}


async def test_a_reader_that_is_renewed_is_another_process_and_the_source_was_never_down(
    nvml_library: Path, tmp_path: Path
) -> None:
    source = make(nvml_library, VirtualState.create(tmp_path / "virtual.state", "node-a"), tmp_path)
    async with running(source) as found:
        await found.find(GpuSample)
        [first] = source.keeper.pids()
        await source.keeper.renew()
        await found.find(GpuSample, after=len(found.seen))
        [second] = source.keeper.pids()
        assert second != first
        assert not exists(first)
        assert {one.state for one in found.all(SourceState)} == {"up"}


async def test_a_reader_is_not_renewed_while_the_driver_must_be_shut(nvml_library: Path, tmp_path: Path) -> None:
    source = make(nvml_library, VirtualState.create(tmp_path / "virtual.state", "node-a"), tmp_path)
    async with running(source) as found:
        await found.find(GpuSample)
        await source.keeper.rest()
        await source.keeper.renew()
        assert source.keeper.pids() == frozenset()
        assert source.health.starts == 1


async def test_the_end_waits_neither_for_a_call_that_hangs_nor_for_the_next_look(
    nvml_library: Path, tmp_path: Path
) -> None:
    state = VirtualState.create(tmp_path / "virtual.state", "node-a")
    async with asyncio.timeout(60.0), running(make(nvml_library, state, tmp_path, look_s=600.0)) as found:
        await found.find(GpuSample)
        state.gpus[4].hang = 1
        for _ in range(3):  # the others are read on: by then the fifth is inside its call
            await found.find(GpuSample, lambda one: one.index == 5, after=len(found.seen))
        pid = child_pid()
    assert not exists(pid)


async def test_a_reader_that_cannot_be_started_is_a_source_that_is_down_and_is_tried_again(
    nvml_library: Path, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "run"
    in_the_way.touch()
    source = make(nvml_library, VirtualState.create(tmp_path / "virtual.state", "node-a"), in_the_way)
    async with running(source) as found:
        down = await found.find(SourceState, lambda one: one.state == "down")
        assert (down.error or "").startswith("NOT_STARTED")
        in_the_way.unlink()
        await found.find(SourceState, lambda one: one.state == "up")
