"""The life of a virtual node: switched on, GPUs reset, the node rebooted, a GPU taken out.

A reset or reboot does to the file what it does to the hardware: a pending remap takes effect, counters that
live since driver load start anew, a GPU that fell off the bus is found again after a reboot only.
"""

from pathlib import Path
from typing import Any

from agent.virtual.boards import parse_shape
from agent.virtual.faults import mend_links
from agent.virtual.state import VirtualState, machine_boot_id
from vocab.clock import Clock
from vocab.errors import InputError, Refused

_SINCE_DRIVER_LOAD = (
    "ecc_dram_corrected", "ecc_sram_corrected", "ecc_dram_uncorrected", "ecc_sram_uncorrected", "pcie_replays",
    "energy_exact_j", "energy_mj", "power_violation_ns", "thermal_violation_ns", "sw_thermal_ns", "hw_thermal_ns",
    "power_brake_ns", "nvlink_tx_kib", "nvlink_rx_kib", "recovery_action", "hang",
)  # fmt: skip


def power_on(path: Path, node: str, shape: str, *, clock: Clock | None = None) -> VirtualState:
    """The node in this file as it was left, or a new one if there is none.

    If the machine has booted since, the virtual node has too. Raises ConfigError for an unknown shape and
    InputError if the file holds another node or layout.
    """
    count, board = parse_shape(shape)
    if not path.exists():
        return VirtualState.create(path, node, shape, clock=clock)
    state = VirtualState.open(path, clock=clock)
    if (state.node, int(state.block.gpu_count), state.board) != (node, count, board):
        was = f"{state.node} with {int(state.block.gpu_count)}x{state.board.key}"
        state.close()
        raise InputError(f"{path}: holds {was}, not {node} with {shape}; remove the file to start a new node")
    if state.block.machine_boot_id.decode() != machine_boot_id():
        reboot(state)
    return state


def reset_gpu(state: VirtualState, index: int) -> None:
    """Reset one GPU. Raises Refused while a process holds it, or if it is not on the bus."""
    gpu = state.gpu(index)
    if gpu.lost or gpu.removed:
        raise Refused(f"GPU {index} of {state.node} is not on the bus: a reset cannot reach it; reboot the node")
    if gpu.process_count:
        pids = ", ".join(str(row.pid) for row in gpu.processes[: gpu.process_count])
        raise Refused(f"GPU {index} of {state.node} is in use by pid {pids}: stop these first")
    with state.changing():
        _restart(gpu)


def reboot(state: VirtualState) -> None:
    """Reboot the node: a new boot id, an empty kernel log, all GPUs on the bus again, no process left."""
    with state.changing():
        for gpu in state.gpus:
            gpu.lost = gpu.introduced = gpu.process_count = 0
            gpu.memory_used_bytes = 0
            _restart(gpu)
        state.block.hang = 0
        state.start_boot()


def _restart(gpu: Any) -> None:
    for name in _SINCE_DRIVER_LOAD:
        setattr(gpu, name, 0)
    gpu.remap_pending = 0  # the rows stay counted: they are in force now
    gpu.ecc_mode = gpu.ecc_mode_pending
    mend_links(gpu)
