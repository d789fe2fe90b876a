"""What is read of a GPU or of one of its links, in base units. ``None``: missing, blank or unsupported.

Names and units are fixed by docs/signals.md; the source that fills a field converts to its unit.
"""

import msgspec


class Readings(msgspec.Struct, frozen=True, omit_defaults=True):
    """One GPU's figures at one moment."""

    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    margin_c: float | None = None
    slowdown_c: float | None = None
    shutdown_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_min_w: float | None = None
    power_limit_max_w: float | None = None
    power_limit_default_w: float | None = None
    energy_j: float | None = None
    sm_clock_hz: float | None = None
    sm_clock_max_hz: float | None = None
    memory_clock_hz: float | None = None
    utilization_ratio: float | None = None
    memory_utilization_ratio: float | None = None
    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    graphics_active_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    clock_reasons: int | None = None
    thermal_violation_s: float | None = None
    power_violation_s: float | None = None
    power_brake_s: float | None = None
    sw_thermal_s: float | None = None
    hw_thermal_s: float | None = None
    ecc_correctable: int | None = None
    ecc_uncorrectable: int | None = None
    ecc_correctable_lifetime: int | None = None
    ecc_uncorrectable_lifetime: int | None = None
    sram_correctable: int | None = None
    sram_uncorrectable: int | None = None
    sram_uncorrectable_lifetime: int | None = None
    sram_threshold_exceeded: int | None = None
    dram_correctable_lifetime: int | None = None
    dram_uncorrectable_lifetime: int | None = None
    remap_correctable: int | None = None
    remap_uncorrectable: int | None = None
    remap_pending: int | None = None
    remap_failed: int | None = None
    remap_banks_max: int | None = None
    remap_banks_high: int | None = None
    remap_banks_partial: int | None = None
    remap_banks_low: int | None = None
    remap_banks_none: int | None = None
    retired_pages_sbe: int | None = None
    retired_pages_dbe: int | None = None
    retirement_pending: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    nvlink_rx_bytes: int | None = None
    nvlink_tx_bytes: int | None = None
    nvlink_megabytes_per_s: float | None = None
    fabric_state: int | None = None
    fabric_status: int | None = None
    fabric_health_mask: int | None = None
    recovery_action: int | None = None
    fan_ratio: float | None = None
    performance_state: int | None = None
    persistence: int | None = None
    mig_mode: int | None = None
    ecc_mode: int | None = None
    ecc_mode_pending: int | None = None


class LinkReadings(msgspec.Struct, frozen=True, omit_defaults=True):
    """One NVLink's figures at one moment; ``state`` 1 is up."""

    state: int | None = None
    crc_errors: int | None = None
    replays: int | None = None
    recoveries: int | None = None
    effective_ber: float | None = None
    symbol_ber: float | None = None
    speed_bytes_per_s: float | None = None
