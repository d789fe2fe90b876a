"""Both libraries in their real child processes: one sample a GPU, and nothing is read twice."""

from pathlib import Path

from agent.sources.dcgm_fields import BY_NAME
from agent.sources.nvml import NvmlSource
from agent.virtual.state import VirtualState, uuid_of
from tests.agent.sources.collector import running
from tests.dcgm.test_source import source_at
from tests.fakes.dcgm.place import stand_in
from vocab.clock import SystemClock
from vocab.observations import GpuSample

GIVEN = ("temperature_c", "power_w", "sm_active_ratio", "pcie_width_max")  # by NVML


def on_dcgm(sample: GpuSample) -> bool:
    return bool(sample.readings) and sample.readings.nvlink_megabytes_per_s is not None


async def test_dcgm_adds_what_nvml_has_not_and_reads_nothing_else(nvml_library: Path, tmp_path: Path) -> None:
    state = VirtualState.create(tmp_path / "virtual.state", "node-a")
    with stand_in() as place:
        assert place.host is not None
        for index, gpu in enumerate(place.host.gpus):
            gpu.values |= {54: uuid_of("node-a", index), 449: 16721, 150: 99}
        dcgm = source_at(place, tmp_path, need_after_s=3.0, alone_after_s=60.0)
        environment = {"CORRAL_FAKE_NVML_STATE": str(state.path)}
        nvml = NvmlSource("node-a", nvml_library, tmp_path, SystemClock(), period_s=0.1, environment=environment,
                          complete=dcgm.complete)  # fmt: skip
        async with running(nvml) as read, running(dcgm) as added:
            sample = await read.find(GpuSample, on_dcgm)
            readings = sample.readings
            assert readings is not None
            assert (readings.nvlink_megabytes_per_s, sample.source) == (16721.0, "nvml")
            assert readings.temperature_c == state.gpus[sample.index or 0].temperature_c
            assert added.all(GpuSample) == []
            (session,) = place.host.sessions
            watched = {field for _, fields in session.fields.values() for field in fields}
            assert BY_NAME["nvlink_megabytes_per_s"].field in watched
            assert watched.isdisjoint({BY_NAME[name].field for name in GIVEN})
