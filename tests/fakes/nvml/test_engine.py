"""What a host engine asks of the fake library beside readings, as the real nvidia-ml-py sees it."""

from pathlib import Path

import pytest

from agent.virtual.state import VirtualState
from tests.fakes.nvml.scenario import ask

NOT_SUPPORTED = 3
SWITCH = 2  # NVML_NVLINK_DEVICE_TYPE_SWITCH


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a")


def test_the_board_says_what_it_is(nvml_library: Path, state: VirtualState) -> None:
    found = ask(
        nvml_library,
        state.path,
        """[
            nvml.nvmlDeviceGetCudaComputeCapability(gpu(0)),
            nvml.nvmlDeviceGetArchitecture(gpu(0)),
            nvml.nvmlDeviceGetBAR1MemoryInfo(gpu(0)).bar1Total >> 30,
            nvml.nvmlDeviceGetInforomVersion(gpu(0), nvml.NVML_INFOROM_ECC),
            nvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu(0), 17),
            error(nvml.nvmlDeviceGetAttributes_v2, gpu(0)),
            error(nvml.nvmlDeviceValidateInforom, gpu(0)),
            error(nvml.nvmlDeviceGetRetiredPagesPendingStatus, gpu(0)),
        ]""",
    )
    assert found == [[9, 0], 9, 128, "7.16", SWITCH, NOT_SUPPORTED, 0, NOT_SUPPORTED]


def test_gpus_of_one_socket_are_nearer(nvml_library: Path, state: VirtualState) -> None:
    level = "nvml.nvmlDeviceGetTopologyCommonAncestor(gpu({}), gpu({}))"
    near, far = (ask(nvml_library, state.path, level.format(0, other)) for other in (3, 4))
    assert near < far
    assert ask(nvml_library, state.path, "nvml.nvmlDeviceGetCpuAffinity(gpu(7), 1)[0]") == 0xFFFFFFFF << 32
