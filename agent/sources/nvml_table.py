"""What else is read of a GPU through NVML, and how it becomes base units: tables.

*Fast* figures are read each period (the single calls of them in nvml_quick), *slow* ones each 10 s, *static* ones
each hour; the split follows what they cost and how fast they move. Numbers of fields and thresholds are those of
nvml.h. Slow and static figures that are settings rather than measurements are *facts*: every sample shows them.
"""

from collections.abc import Callable
from ctypes import byref
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller
from agent.sources.nvml_errors import NEVER_SUPPORTED
from agent.sources.nvml_fields import FieldRow
from agent.sources.nvml_quick import CLOCK_SM, SENSOR_GPU, Values
from agent.sources.units import kibi, mega, milli, nano, percent, same

Take = Callable[[Caller, Any], Values]  # (caller, device handle) -> readings by name

THRESHOLD_SHUTDOWN, THRESHOLD_SLOWDOWN = 0, 1
TLIMIT_SHUTDOWN, TLIMIT_SLOWDOWN = 193, 194  # degrees of margin, where absolute thresholds are gone
ALL_LINKS = 0xFFFFFFFF  # scope of a sum over links
CORRECTED, UNCORRECTED, VOLATILE, LIFETIME = 0, 1, 0, 1
SRAM, DRAM = 7, 2  # nvmlMemoryLocation_t


class Read(msgspec.Struct, frozen=True):
    """One call and the readings that it gives."""

    names: tuple[str, ...]
    take: Take


def _one(name: str, call: str, *arguments: Any, convert: Callable[[Any], Any] = same) -> Read:
    def take(caller: Caller, handle: Any) -> Values:
        return {name: convert(caller(call, handle, *arguments))}

    return Read((name,), take)


def _parts(names: tuple[str, ...], call: str, split: Callable[[Any], tuple[Any, ...]]) -> Read:
    def take(caller: Caller, handle: Any) -> Values:
        return dict(zip(names, split(caller(call, handle)), strict=True))

    return Read(names, take)


_SRAM = ("sram_uncorrectable_lifetime", "sram_threshold_exceeded")


def _sram(caller: Caller, handle: Any) -> Values:
    status = caller.api.c_nvmlEccSramErrorStatus_v1_t()
    caller("nvmlDeviceGetSramEccErrorStatus", handle, byref(status))
    return dict(zip(_SRAM, (status.aggregateUncParity + status.aggregateUncSecDed, status.bThresholdExceeded),
                    strict=True))  # fmt: skip


def _errors(name: str, kind: int, counter: int, location: int) -> Read:
    return _one(name, "nvmlDeviceGetMemoryErrorCounter", kind, counter, location)


def _fabric(caller: Caller, handle: Any) -> Values:
    found = caller.api.c_nvmlGpuFabricInfo_v2_t()  # sets its own version; newer drivers still take it
    caller("nvmlDeviceGetGpuFabricInfoV", handle, byref(found))
    return {"fabric_state": found.state, "fabric_status": found.status, "fabric_health_mask": found.healthMask}


def _threshold(name: str, kind: int, tlimit: int) -> Read:
    """An absolute threshold in degrees; from the margin and the T.Limit field where the driver has no other."""

    def take(caller: Caller, handle: Any) -> Values:
        try:
            return {name: float(caller("nvmlDeviceGetTemperatureThreshold", handle, kind))}
        except CallFailed as failed:
            if failed.error not in NEVER_SUPPORTED:
                raise
        now = caller("nvmlDeviceGetTemperature", handle, SENSOR_GPU)
        margin = caller("nvmlDeviceGetMarginTemperature", handle)
        (field,) = caller("nvmlDeviceGetFieldValues", handle, [tlimit])
        if field.nvmlReturn:
            raise CallFailed("nvmlDeviceGetFieldValues", "NOT_SUPPORTED")
        return {name: float(now + margin - field.value.siVal)}

    return Read((name,), take)


FAST_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(82, "memory_temperature_c", float),
    FieldRow(83, "energy_j", milli),
    FieldRow(74, "power_violation_s", nano),
    FieldRow(75, "thermal_violation_s", nano),
    FieldRow(271, "power_brake_s", nano),
)
PCIE_SENT, PCIE_RECEIVED = "pcie_tx_bytes", "pcie_rx_bytes"  # counters, from which rates are made; not readings
TRAFFIC_FIELDS = (FieldRow(197, PCIE_SENT), FieldRow(198, PCIE_RECEIVED))

SLOW: tuple[Read, ...] = (
    _one("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", convert=milli),
    _parts(("mig_mode",), "nvmlDeviceGetMigMode", lambda modes: (modes[0],)),
    Read(_SRAM, _sram),
    _errors("sram_correctable", CORRECTED, VOLATILE, SRAM),
    _errors("sram_uncorrectable", UNCORRECTED, VOLATILE, SRAM),
    _errors("dram_correctable_lifetime", CORRECTED, LIFETIME, DRAM),
    _errors("dram_uncorrectable_lifetime", UNCORRECTED, LIFETIME, DRAM),
    _parts(
        ("remap_banks_max", "remap_banks_high", "remap_banks_partial", "remap_banks_low", "remap_banks_none"),
        "nvmlDeviceGetRowRemapperHistogram",
        lambda banks: (banks.max, banks.high, banks.partial, banks.low, banks.none),
    ),
    _one("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _one("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _one("pcie_replays", "nvmlDeviceGetPcieReplayCounter"),
    _one("fan_ratio", "nvmlDeviceGetFanSpeed", convert=percent),
    Read(("fabric_state", "fabric_status", "fabric_health_mask"), _fabric),
)

SLOW_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(1, "ecc_mode"),
    FieldRow(2, "ecc_mode_pending"),
    FieldRow(3, "ecc_correctable"),
    FieldRow(4, "ecc_uncorrectable"),
    FieldRow(5, "ecc_correctable_lifetime"),
    FieldRow(6, "ecc_uncorrectable_lifetime"),
    FieldRow(29, "retired_pages_sbe"),
    FieldRow(30, "retired_pages_dbe"),
    FieldRow(31, "retirement_pending"),
    FieldRow(138, "nvlink_tx_bytes", kibi, ALL_LINKS),
    FieldRow(139, "nvlink_rx_bytes", kibi, ALL_LINKS),
    FieldRow(142, "remap_correctable"),
    FieldRow(143, "remap_uncorrectable"),
    FieldRow(144, "remap_pending"),
    FieldRow(145, "remap_failed"),
    FieldRow(230, "recovery_action"),
    FieldRow(269, "sw_thermal_s", nano),
    FieldRow(270, "hw_thermal_s", nano),
)

STATIC: tuple[Read, ...] = (
    _threshold("shutdown_c", THRESHOLD_SHUTDOWN, TLIMIT_SHUTDOWN),
    _threshold("slowdown_c", THRESHOLD_SLOWDOWN, TLIMIT_SLOWDOWN),
    _one("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
    _one("sm_clock_max_hz", "nvmlDeviceGetMaxClockInfo", CLOCK_SM, convert=mega),
    _one("persistence", "nvmlDeviceGetPersistenceMode"),
)
STATIC_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(187, "power_limit_min_w", milli),
    FieldRow(188, "power_limit_max_w", milli),
    FieldRow(189, "power_limit_default_w", milli),
)

FACTS = frozenset(
    {
        *("shutdown_c", "slowdown_c", "pcie_generation_max", "pcie_width_max", "sm_clock_max_hz", "persistence"),
        *("power_limit_min_w", "power_limit_max_w", "power_limit_default_w"),
        *("power_limit_w", "mig_mode", "ecc_mode", "ecc_mode_pending"),
    }
)
