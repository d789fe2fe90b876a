"""A keeper at rest: the driver is shut for somebody else, and that is no news of the source."""

from pathlib import Path

from agent.virtual.state import VirtualState
from tests.agent.sources.collector import running
from tests.agent.sources.test_nvml import exists, make
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
