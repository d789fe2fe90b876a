"""Switching on, resets, reboots, removal."""

from pathlib import Path

import pytest

from agent.virtual.faults import Fault, apply
from agent.virtual.lifecycle import power_on, reboot, reset_gpu
from agent.virtual.state import VirtualState
from vocab.clock import VirtualClock
from vocab.errors import InputError, Refused


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a", clock=VirtualClock(1_000_000.0))


def test_a_pending_remap_clears_on_reset_and_its_rows_stay_counted(state: VirtualState) -> None:
    apply(state, Fault(kind="remap", count=2))
    apply(state, Fault(kind="ecc", count=3))
    reset_gpu(state, 0)
    gpu = state.gpus[0]
    assert (gpu.remap_pending, gpu.remap_uncorrectable) == (0, 2)
    assert (gpu.ecc_dram_uncorrected, gpu.ecc_dram_uncorrected_lifetime) == (0, 3)


def test_a_failed_remap_survives_resets(state: VirtualState) -> None:
    apply(state, Fault(kind="remap", failed=True))
    reset_gpu(state, 0)
    assert state.gpus[0].remap_failed == 1


def test_a_reset_does_not_reach_a_lost_gpu_and_a_reboot_finds_it_again(state: VirtualState) -> None:
    apply(state, Fault(kind="xid", code=79))
    with pytest.raises(Refused, match="reboot the node"):
        reset_gpu(state, 0)
    reboot(state)
    assert state.gpus[0].lost == 0


def test_a_gpu_in_use_is_not_reset(state: VirtualState) -> None:
    gpu = state.gpus[0]
    gpu.processes[0].pid, gpu.process_count = 4242, 1
    with pytest.raises(Refused, match="in use by pid 4242"):
        reset_gpu(state, 0)


def test_a_reboot_gives_a_new_boot_id_and_an_empty_log(state: VirtualState) -> None:
    apply(state, Fault(kind="xid", code=13))
    boot = state.boot_id
    reboot(state)
    assert state.boot_id != boot
    assert (state.boot_at, state.uptime_s()) == (1_000_000.0, 0.0)
    assert state.block.log_next == 1
    assert b"loading NVIDIA" in (state.read_log(0) or b"")


def test_power_on_finds_the_node_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "virtual.state"
    first = power_on(path, "node-a", "8xH100")
    apply(first, Fault(kind="remap"))
    second = power_on(path, "node-a", "8xH100")
    assert (second.boot_id, second.gpus[0].remap_pending) == (first.boot_id, 1)


def test_a_reboot_of_the_machine_reboots_the_virtual_node(tmp_path: Path) -> None:
    path = tmp_path / "virtual.state"
    first = power_on(path, "node-a", "8xH100")
    boot = first.boot_id
    apply(first, Fault(kind="xid", code=79))
    first.block.machine_boot_id = b"another boot"
    second = power_on(path, "node-a", "8xH100")
    assert second.boot_id != boot
    assert second.gpus[0].lost == 0


@pytest.mark.parametrize(("node", "shape"), [("node-b", "8xH100"), ("node-a", "4xH100")])
def test_a_file_of_another_node_is_refused(tmp_path: Path, node: str, shape: str) -> None:
    path = tmp_path / "virtual.state"
    power_on(path, "node-a", "8xH100").close()
    with pytest.raises(InputError, match=r"holds node-a with 8xH100.*remove the file"):
        power_on(path, node, shape)
