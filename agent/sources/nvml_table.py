"""What is read of a GPU through NVML, how often, and how it becomes base units: tables.

*Fast* figures are read each period, *slow* ones each 10 s, *static* ones each hour; the split follows what
they cost and how fast they move. Numbers of fields, sensors and clocks are those of nvml.h.
"""

from collections.abc import Callable
from ctypes import byref
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller
from vocab.readings import LinkReadings

Values = dict[str, Any]
Take = Callable[[Caller, Any], Values]  # (caller, device handle) -> readings by name

SENSOR_GPU = 0
CLOCK_SM, CLOCK_MEMORY = 1, 2
THRESHOLD_SHUTDOWN, THRESHOLD_SLOWDOWN = 0, 1
TLIMIT_SHUTDOWN, TLIMIT_SLOWDOWN = 193, 194  # degrees of margin, where absolute thresholds are gone
ALL_LINKS = 0xFFFFFFFF  # scope of a sum over links


def same(value: Any) -> Any:
    """Counts, masks and states."""
    return value


def milli(value: float) -> float:
    """mW, mJ."""
    return value / 1000


def nano(value: float) -> float:
    """ns."""
    return value / 1e9


def percent(value: float) -> float:
    """0 to 100 as a ratio."""
    return value / 100


def mega(value: float) -> float:
    """MHz, MB/s."""
    return float(value * 1_000_000)


def kibi(value: int) -> int:
    """KiB."""
    return value * 1024


class Read(msgspec.Struct, frozen=True):
    """One call and the readings that it gives."""

    names: tuple[str, ...]
    take: Take


class FieldRow(msgspec.Struct, frozen=True):
    """One NVML field value and the reading that it becomes."""

    field: int
    name: str
    convert: Callable[[Any], Any] = same
    scope: int = 0


def _one(name: str, call: str, *arguments: Any, convert: Callable[[Any], Any] = same) -> Read:
    def take(caller: Caller, handle: Any) -> Values:
        return {name: convert(caller(call, handle, *arguments))}

    return Read((name,), take)


def _parts(names: tuple[str, ...], call: str, split: Callable[[Any], tuple[Any, ...]]) -> Read:
    def take(caller: Caller, handle: Any) -> Values:
        return dict(zip(names, split(caller(call, handle)), strict=True))

    return Read(names, take)


def _memory(caller: Caller, handle: Any) -> Values:
    """The second version tells reserved memory apart; the first counts it as used."""
    try:
        found = caller("nvmlDeviceGetMemoryInfo", handle, caller.api.nvmlMemory_v2)
    except CallFailed as failed:
        if failed.error not in {"FUNCTION_NOT_FOUND", "ARGUMENT_VERSION_MISMATCH", "NOT_SUPPORTED"}:
            raise
        found = caller("nvmlDeviceGetMemoryInfo", handle)
        return {"memory_total_bytes": found.total, "memory_used_bytes": found.used}
    return {
        "memory_total_bytes": found.total,
        "memory_used_bytes": found.used,
        "memory_reserved_bytes": found.reserved,
    }


def _sram(caller: Caller, handle: Any) -> Values:
    status = caller.api.c_nvmlEccSramErrorStatus_v1_t()
    caller("nvmlDeviceGetSramEccErrorStatus", handle, byref(status))
    return {
        "sram_uncorrectable_lifetime": status.aggregateUncParity + status.aggregateUncSecDed,
        "sram_threshold_exceeded": status.bThresholdExceeded,
    }


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
            if failed.error != "NOT_SUPPORTED":
                raise
        now = caller("nvmlDeviceGetTemperature", handle, SENSOR_GPU)
        margin = caller("nvmlDeviceGetMarginTemperature", handle)
        (field,) = caller("nvmlDeviceGetFieldValues", handle, [tlimit])
        if field.nvmlReturn:
            raise CallFailed("nvmlDeviceGetFieldValues", "NOT_SUPPORTED")
        return {name: float(now + margin - field.value.siVal)}

    return Read((name,), take)


def _utilization(rates: Any) -> tuple[float, float]:
    return percent(rates.gpu), percent(rates.memory)


FAST: tuple[Read, ...] = (
    _one("temperature_c", "nvmlDeviceGetTemperature", SENSOR_GPU, convert=float),
    _one("margin_c", "nvmlDeviceGetMarginTemperature", convert=float),
    _one("power_w", "nvmlDeviceGetPowerUsage", convert=milli),
    _one("sm_clock_hz", "nvmlDeviceGetClockInfo", CLOCK_SM, convert=mega),
    _one("memory_clock_hz", "nvmlDeviceGetClockInfo", CLOCK_MEMORY, convert=mega),
    _one("clock_reasons", "nvmlDeviceGetCurrentClocksEventReasons"),
    _one("performance_state", "nvmlDeviceGetPerformanceState"),
    _parts(("utilization_ratio", "memory_utilization_ratio"), "nvmlDeviceGetUtilizationRates", _utilization),
    Read(("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes"), _memory),
)

FAST_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(82, "memory_temperature_c", float),
    FieldRow(83, "energy_j", milli),
    FieldRow(74, "power_violation_s", nano),
    FieldRow(75, "thermal_violation_s", nano),
    FieldRow(271, "power_brake_s", nano),
)

SLOW: tuple[Read, ...] = (
    _one("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", convert=milli),
    _parts(("ecc_mode", "ecc_mode_pending"), "nvmlDeviceGetEccMode", tuple),
    Read(("sram_uncorrectable_lifetime", "sram_threshold_exceeded"), _sram),
    _parts(
        ("remap_correctable", "remap_uncorrectable", "remap_pending", "remap_failed"),
        "nvmlDeviceGetRemappedRows",
        tuple,
    ),
    _parts(("remap_banks_none",), "nvmlDeviceGetRowRemapperHistogram", lambda banks: (banks.none,)),
    _one("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _one("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _one("pcie_replays", "nvmlDeviceGetPcieReplayCounter"),
    _one("fan_ratio", "nvmlDeviceGetFanSpeed", convert=percent),
    Read(("fabric_state", "fabric_status", "fabric_health_mask"), _fabric),
)

SLOW_FIELDS: tuple[FieldRow, ...] = (
    FieldRow(3, "ecc_correctable"),
    FieldRow(4, "ecc_uncorrectable"),
    FieldRow(5, "ecc_correctable_lifetime"),
    FieldRow(6, "ecc_uncorrectable_lifetime"),
    FieldRow(29, "retired_pages_sbe"),
    FieldRow(30, "retired_pages_dbe"),
    FieldRow(31, "retirement_pending"),
    FieldRow(138, "nvlink_tx_bytes", kibi, ALL_LINKS),
    FieldRow(139, "nvlink_rx_bytes", kibi, ALL_LINKS),
    FieldRow(230, "recovery_action"),
)

STATIC: tuple[Read, ...] = (
    _threshold("shutdown_c", THRESHOLD_SHUTDOWN, TLIMIT_SHUTDOWN),
    _threshold("slowdown_c", THRESHOLD_SLOWDOWN, TLIMIT_SLOWDOWN),
    _one("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
    _one("persistence", "nvmlDeviceGetPersistenceMode"),
    _parts(("mig_mode",), "nvmlDeviceGetMigMode", lambda modes: (modes[0],)),
)

LINK_COUNT_FIELD = 91
LINK_FIELDS: tuple[FieldRow, ...] = (  # one value a link, by scope
    FieldRow(165, "state"),
    FieldRow(161, "replays"),
    FieldRow(162, "recoveries"),
    FieldRow(163, "crc_errors"),
    FieldRow(164, "speed_bytes_per_s", mega),
)
assert {row.name for row in LINK_FIELDS} <= set(LinkReadings.__struct_fields__)


_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


def value_of(field: Any, convert: Callable[[Any], Any] = same) -> Any:
    """The number in an NVML field value, read by its type, in base units."""
    return convert(getattr(field.value, _MEMBERS[field.valueType]))
