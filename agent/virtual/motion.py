"""Moves a GPU's block by one step of physics, and writes what NVML shows of it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from agent.virtual import layout
from agent.virtual.boards import Board
from agent.virtual.physics import Load, Upset, Vitals, step


class Held(msgspec.Struct, frozen=True):
    """A process that holds memory of a GPU."""

    pid: int
    used_bytes: int


def advance(gpu: Any, board: Board, load: Load, held: Sequence[Held], dt: float) -> None:
    """``dt`` seconds pass for one GPU under this load, with these processes on it."""
    upset = Upset(heat_c=gpu.heat_c or None, power_brake=bool(gpu.power_brake))
    _write_vitals(gpu, step(board, _read_vitals(gpu), load, upset, dt))
    _write_load(gpu, load, dt)
    _write_processes(gpu, held)


def _read_vitals(gpu: Any) -> Vitals:
    return Vitals(
        core_c=gpu.core_c,
        memory_c=gpu.memory_c,
        power_w=gpu.power_exact_w,
        energy_j=gpu.energy_exact_j,
        power_violation_ns=gpu.power_violation_ns,
        sw_thermal_ns=gpu.sw_thermal_ns,
        hw_thermal_ns=gpu.hw_thermal_ns,
        power_brake_ns=gpu.power_brake_ns,
    )


def _write_vitals(gpu: Any, vitals: Vitals) -> None:
    gpu.core_c, gpu.memory_c = vitals.core_c, vitals.memory_c
    gpu.power_exact_w, gpu.energy_exact_j = vitals.power_w, vitals.energy_j
    gpu.temperature_c, gpu.memory_temperature_c = int(vitals.core_c), int(vitals.memory_c)
    gpu.power_mw, gpu.energy_mj = round(vitals.power_w * 1000), round(vitals.energy_j * 1000)
    gpu.sm_mhz, gpu.clock_reasons = vitals.sm_mhz, vitals.clock_reasons
    gpu.power_violation_ns = vitals.power_violation_ns
    gpu.sw_thermal_ns, gpu.hw_thermal_ns = vitals.sw_thermal_ns, vitals.hw_thermal_ns
    gpu.thermal_violation_ns = vitals.sw_thermal_ns + vitals.hw_thermal_ns
    gpu.power_brake_ns = vitals.power_brake_ns


def _write_load(gpu: Any, load: Load, dt: float) -> None:
    gpu.utilization_percent = round(load.utilization * 100)
    gpu.memory_utilization_percent = round(load.dram * 100)
    gpu.graphics_percent = load.utilization * 100
    gpu.sm_active_percent, gpu.sm_occupancy_percent = load.sm_active * 100, load.sm_occupancy * 100
    gpu.tensor_percent, gpu.dram_percent = load.tensor * 100, load.dram * 100
    gpu.pcie_tx_kb_per_s = gpu.pcie_rx_kb_per_s = load.host_kib_per_s
    moved = round(load.links_kib_per_s * dt)
    gpu.nvlink_tx_kib += moved
    gpu.nvlink_rx_kib += moved


def _write_processes(gpu: Any, held: Sequence[Held]) -> None:
    shown = held[: layout.MAX_PROCESSES]
    for row, process in zip(gpu.processes, shown, strict=False):
        row.pid, row.used_bytes = process.pid, process.used_bytes
    gpu.process_count = len(shown)
    gpu.memory_used_bytes = sum(process.used_bytes for process in held)
