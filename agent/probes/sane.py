"""What a reading can be at all. Everything else is absent, with the reason beside it; never clamped, never a number.

Which value stands for *nothing* depends on the field: all ones is a failed read of a temperature and the true end of
a port's counter. So there is one row a reading, and DCGM's blanks are the same for all (dcgm_structs.h): four values
at the end of each number type. Applying it twice changes nothing.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from vocab.observations import GpuProcess, GpuSample
from vocab.readings import LinkReadings, Readings

IMPLAUSIBLE = "IMPLAUSIBLE"  # a value outside of its row; the other reasons are NVML's and DCGM's own words
BLANK_KINDS = ("BLANK", "NOT_FOUND", "NOT_SUPPORTED", "NOT_PERMISSIONED")
BLANKS: dict[float, str] = {
    **{
        first + number: kind
        for first in (2**31 - 16, 2**63 - 16, 2**47)  # int32, int64, fp64 blanks of DCGM
        for number, kind in enumerate(BLANK_KINDS)
    },
    2**63: "BLANK",  # an int64 blank that became a float on its way has lost which kind it was
}
ALL_ONES = frozenset({2**32 - 1, 2**64 - 1})

_TEMPERATURE = (-10.0, 150.0)  # sensors of a running board; 255 is a failed read
_WATTS = (0.0, 5_000.0)  # a board draws up to 1,500 W; all ones in mW is over four million
_RATIO = (0.0, 1.000_001)  # a rounding error is not a wrong value; 1.01 is
_HERTZ = (0.0, 1e10)
_BYTES = (0, 2**46)  # 64 TiB; no board has one
_RATE = (0.0, 1e13)
_COUNT = (0, 2**53)  # a storm of thousands a second passes 2**31 in days
_SECONDS = (0.0, 1e10)
_FLAG = (0, 1)

RANGES: dict[str, tuple[float, float]] = {
    "temperature_c": _TEMPERATURE,
    "memory_temperature_c": _TEMPERATURE,
    "margin_c": (-100.0, 150.0),
    "slowdown_c": (1.0, 150.0),
    "shutdown_c": (1.0, 150.0),
    "power_w": _WATTS,
    "power_limit_w": (1.0, 5_000.0),
    "power_limit_min_w": _WATTS,
    "power_limit_max_w": (1.0, 5_000.0),
    "power_limit_default_w": (1.0, 5_000.0),
    "energy_j": (0.0, 1e14),
    "sm_clock_hz": _HERTZ,
    "sm_clock_max_hz": _HERTZ,
    "memory_clock_hz": _HERTZ,
    "utilization_ratio": _RATIO,
    "memory_utilization_ratio": _RATIO,
    "sm_active_ratio": _RATIO,
    "sm_occupancy_ratio": _RATIO,
    "tensor_active_ratio": _RATIO,
    "dram_active_ratio": _RATIO,
    "graphics_active_ratio": _RATIO,
    "memory_used_bytes": _BYTES,
    "memory_total_bytes": (1, 2**46),
    "memory_reserved_bytes": _BYTES,
    "clock_reasons": (0, 0xFFFF),  # NVML defines nine bits; a mask far above them is a failed read
    "thermal_violation_s": _SECONDS,
    "power_violation_s": _SECONDS,
    "power_brake_s": _SECONDS,
    "sw_thermal_s": _SECONDS,
    "hw_thermal_s": _SECONDS,
    "ecc_correctable": _COUNT,
    "ecc_uncorrectable": _COUNT,
    "ecc_correctable_lifetime": _COUNT,
    "ecc_uncorrectable_lifetime": _COUNT,
    "sram_correctable": _COUNT,
    "sram_uncorrectable": _COUNT,
    "sram_uncorrectable_lifetime": _COUNT,
    "sram_threshold_exceeded": _FLAG,
    "dram_correctable_lifetime": _COUNT,
    "dram_uncorrectable_lifetime": _COUNT,
    "remap_correctable": (0, 2**20),
    "remap_uncorrectable": (0, 2**20),
    "remap_pending": _FLAG,
    "remap_failed": _FLAG,
    "remap_banks_max": (0, 2**20),
    "remap_banks_high": (0, 2**20),
    "remap_banks_partial": (0, 2**20),
    "remap_banks_low": (0, 2**20),
    "remap_banks_none": (0, 2**20),
    "retired_pages_sbe": (0, 2**20),
    "retired_pages_dbe": (0, 2**20),
    "retirement_pending": _FLAG,
    "pcie_generation": (1, 8),
    "pcie_generation_max": (1, 8),
    "pcie_width": (1, 32),  # no lanes at all could not be read
    "pcie_width_max": (1, 32),
    "pcie_replays": _COUNT,
    "pcie_rx_bytes_per_s": _RATE,
    "pcie_tx_bytes_per_s": _RATE,
    "nvlink_rx_bytes": (0, 2**63 - 17),
    "nvlink_tx_bytes": (0, 2**63 - 17),
    "nvlink_megabytes_per_s": (0.0, 1e7),
    "fabric_state": (0, 6),  # NVML ends at 3, DCGM at 6
    "fabric_status": (0, 999),
    "fabric_health_mask": (0, 2**32 - 2),
    "recovery_action": (0, 254),  # 0 to 7 so far; a newer driver may know more
    "fan_ratio": (0.0, 2.0),  # NVML says itself that fans go over 100 %
    "performance_state": (0, 15),  # 32 is NVML's *unknown*
    "persistence": _FLAG,
    "mig_mode": _FLAG,
    "ecc_mode": _FLAG,
    "ecc_mode_pending": _FLAG,
}
LINK_RANGES: dict[str, tuple[float, float]] = {
    "state": _FLAG,
    "crc_errors": _COUNT,
    "replays": _COUNT,
    "recoveries": _COUNT,
    "effective_ber": (0.0, 1.0),
    "symbol_ber": (0.0, 1.0),
    "speed_bytes_per_s": _RATE,
}
assert set(RANGES) == set(Readings.__struct_fields__)
assert set(LINK_RANGES) == set(LinkReadings.__struct_fields__)


def reason(value: float, low: float, high: float) -> str | None:
    """Why this value is none, or None if it is one."""
    blank = BLANKS.get(value)
    if blank is not None:
        return blank
    return None if low <= value <= high and value not in ALL_ONES else IMPLAUSIBLE


def _checker(ranges: Mapping[str, tuple[float, float]]) -> Callable[[Any], dict[str, str]]:
    """A function that names the impossible values of a struct with these fields; most samples have none."""
    values_of, rows = attrgetter(*ranges), [(name, low, high) for name, (low, high) in ranges.items()]

    def check(readings: Any) -> dict[str, str]:
        found = {}
        for value, (name, low, high) in zip(values_of(readings), rows, strict=True):
            if value is None or (low <= value <= high and (value < _FIRST_BLANK or value not in _NEVER)):
                continue
            if (why := reason(value, low, high)) is not None:
                found[name] = why
        return found

    return check


_NEVER = ALL_ONES.union(BLANKS)
_FIRST_BLANK = min(_NEVER)
_faults, _link_faults = _checker(RANGES), _checker(LINK_RANGES)


def _overfull(readings: Readings) -> bool:
    """More memory used than there is."""
    used, total = readings.memory_used_bytes, readings.memory_total_bytes
    return used is not None and total is not None and used > total


def _without(readings: Any, names: Mapping[str, str]) -> Any:
    return msgspec.structs.replace(readings, **dict.fromkeys(names)) if names else readings


def _process(process: GpuProcess) -> GpuProcess:
    used = process.used_bytes
    if used is None or reason(used, 0, 2**46) is None:
        return process
    return msgspec.structs.replace(process, used_bytes=None)


def clean(sample: GpuSample) -> GpuSample:
    """The sample with every impossible value absent, and named in its ``errors`` (of a link in ``link_errors``)."""
    bad = _faults(sample.readings) if sample.readings is not None else {}
    readings = _without(sample.readings, bad)
    if readings is not None and _overfull(readings):
        bad["memory_used_bytes"] = IMPLAUSIBLE
        readings = _without(readings, {"memory_used_bytes": IMPLAUSIBLE})
    links, link_errors = _links(sample) if sample.links else (sample.links, sample.link_errors)
    instances, processes = sample.instances, sample.processes
    if instances:
        instances = {key: _without(one, _faults(one)) for key, one in instances.items()}
    if processes:
        processes = tuple(_process(process) for process in processes)
    if not bad and links is sample.links and instances == sample.instances and processes == sample.processes:
        return sample
    return msgspec.structs.replace(
        sample,
        readings=readings,
        errors=bad | sample.errors,
        links=links,
        link_errors=link_errors,
        instances=instances,
        processes=processes,
    )


def _links(sample: GpuSample) -> tuple[dict[str, LinkReadings], dict[str, dict[str, str]]]:
    bad = {n: faults for n, link in sample.links.items() if (faults := _link_faults(link))}
    if not bad:
        return sample.links, sample.link_errors
    links = {n: _without(link, bad.get(n, {})) for n, link in sample.links.items()}
    return links, {**sample.link_errors, **{n: found | sample.link_errors.get(n, {}) for n, found in bad.items()}}
