"""Which DCGM field is which reading, how often it moves, and how it becomes base units: one table.

Numbers only: DCGM 4.6 renamed most of its constants and kept every number (dcgm_fields.h). DCGM's sums over
NVLinks (1011, 1012) are rates where our readings are counters, so they are left to NVML.
"""

from collections.abc import Callable

import msgspec

from agent.sources.units import mebi, mega, milli, nano, percent, same
from vocab.readings import Readings

Convert = Callable[[float], float | None]

FAST_S, SLOW_S, STATIC_S = 1.0, 10.0, 3600.0
XID = 230  # the last Xid; its time stamp is that of the event
COMPUTE_CAPABILITY = 63  # major << 16 | minor


def sensor(value: float) -> float | None:
    """Degrees of a sensor that reads 0 where there is none."""
    return value or None


class FieldRow(msgspec.Struct, frozen=True):
    """One field and the reading that it becomes."""

    field: int
    name: str
    convert: Convert = same
    period_s: float = FAST_S
    profiling: bool = False  # of the performance counters, which one tool at a time may hold


def _slow(field: int, name: str, convert: Convert = same) -> FieldRow:
    return FieldRow(field, name, convert, SLOW_S)


def _static(field: int, name: str) -> FieldRow:
    return FieldRow(field, name, same, STATIC_S)


def _profiling(field: int, name: str) -> FieldRow:
    return FieldRow(field, name, profiling=True)


FIELDS: tuple[FieldRow, ...] = (
    FieldRow(150, "temperature_c"),
    FieldRow(140, "memory_temperature_c", sensor),
    FieldRow(153, "margin_c"),
    FieldRow(155, "power_w"),
    FieldRow(156, "energy_j", milli),
    FieldRow(100, "sm_clock_hz", mega),
    FieldRow(101, "memory_clock_hz", mega),
    FieldRow(203, "utilization_ratio", percent),
    FieldRow(204, "memory_utilization_ratio", percent),
    FieldRow(112, "clock_reasons"),
    FieldRow(190, "performance_state"),
    FieldRow(250, "memory_total_bytes", mebi),
    FieldRow(252, "memory_used_bytes", mebi),
    FieldRow(253, "memory_reserved_bytes", mebi),
    FieldRow(240, "power_violation_s", nano),
    FieldRow(241, "thermal_violation_s", nano),
    FieldRow(1424, "power_brake_s", nano),
    FieldRow(449, "nvlink_megabytes_per_s"),
    _slow(164, "power_limit_w"),
    _slow(300, "ecc_mode"),
    _slow(301, "ecc_mode_pending"),
    _slow(310, "ecc_correctable"),
    _slow(311, "ecc_uncorrectable"),
    _slow(312, "ecc_correctable_lifetime"),
    _slow(313, "ecc_uncorrectable_lifetime"),
    _slow(345, "sram_uncorrectable_lifetime"),
    _slow(346, "sram_threshold_exceeded"),
    _slow(389, "remap_banks_none"),
    _slow(390, "retired_pages_sbe"),
    _slow(391, "retired_pages_dbe"),
    _slow(392, "retirement_pending"),
    _slow(393, "remap_uncorrectable"),
    _slow(394, "remap_correctable"),
    _slow(395, "remap_failed"),
    _slow(396, "remap_pending"),
    _slow(237, "pcie_generation"),
    _slow(238, "pcie_width"),
    _slow(202, "pcie_replays"),
    _slow(191, "fan_ratio", percent),
    _slow(170, "fabric_state"),
    _slow(171, "fabric_status"),
    _slow(174, "fabric_health_mask"),
    _slow(1523, "recovery_action"),
    _static(235, "pcie_generation_max"),
    _static(236, "pcie_width_max"),
    _static(158, "slowdown_c"),
    _static(159, "shutdown_c"),
    _static(66, "persistence"),
    _static(67, "mig_mode"),
    _profiling(1001, "graphics_active_ratio"),
    _profiling(1002, "sm_active_ratio"),
    _profiling(1003, "sm_occupancy_ratio"),
    _profiling(1004, "tensor_active_ratio"),
    _profiling(1005, "dram_active_ratio"),
    _profiling(1009, "pcie_tx_bytes_per_s"),
    _profiling(1010, "pcie_rx_bytes_per_s"),
)
BY_NAME: dict[str, FieldRow] = {row.name: row for row in FIELDS}
NAMES = frozenset(BY_NAME)
assert set(Readings.__struct_fields__) >= NAMES


_WHOLE = frozenset(name for name, kind in Readings.__annotations__.items() if kind == (int | None))


def reading(row: FieldRow, value: float) -> float | int | None:
    """The value in base units and in the reading's own type."""
    found = row.convert(value)
    if found is None:
        return None
    return int(found) if row.name in _WHOLE else float(found)
