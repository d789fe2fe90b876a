"""What a source reads of a virtual GPU: its block in base units, as the NVML source would give it."""

from typing import Any

from vocab.observations import GpuIdentity, GpuProcess
from vocab.readings import LinkReadings, Readings

KIB = 1024
MHZ = 1_000_000
MB = 1_000_000


def bus_of(gpu: Any) -> str:
    """``dddd:bb:dd`` in lower case."""
    return f"{gpu.pci_domain:04x}:{gpu.pci_bus:02x}:{gpu.pci_device:02x}"


def identity_of(gpu: Any, index: int) -> GpuIdentity:
    """The inventory's row; ``index`` is the GPU's place among those that are there."""
    return GpuIdentity(
        uuid=gpu.uuid.decode(),
        index=index,
        pci=bus_of(gpu),
        serial=gpu.serial.decode(),
        name=gpu.name.decode(),
    )


def readings_of(gpu: Any) -> Readings:
    """All figures of one GPU."""
    return Readings(
        temperature_c=float(gpu.temperature_c),
        memory_temperature_c=float(gpu.memory_temperature_c),
        margin_c=float(gpu.temperature_max_c) - gpu.temperature_c,
        slowdown_c=float(gpu.temperature_slowdown_c),
        shutdown_c=float(gpu.temperature_shutdown_c),
        power_w=gpu.power_mw / 1000,
        power_limit_w=gpu.power_limit_mw / 1000,
        power_limit_min_w=gpu.power_limit_min_mw / 1000,
        power_limit_max_w=gpu.power_limit_max_mw / 1000,
        power_limit_default_w=gpu.power_limit_max_mw / 1000,
        energy_j=gpu.energy_mj / 1000,
        sm_clock_hz=float(gpu.sm_mhz * MHZ),
        sm_clock_max_hz=float(gpu.sm_max_mhz * MHZ),
        memory_clock_hz=float(gpu.memory_mhz * MHZ),
        utilization_ratio=gpu.utilization_percent / 100,
        memory_utilization_ratio=gpu.memory_utilization_percent / 100,
        sm_active_ratio=gpu.sm_active_percent / 100,
        sm_occupancy_ratio=gpu.sm_occupancy_percent / 100,
        tensor_active_ratio=gpu.tensor_percent / 100,
        dram_active_ratio=gpu.dram_percent / 100,
        graphics_active_ratio=gpu.graphics_percent / 100,
        memory_used_bytes=gpu.memory_used_bytes,
        memory_total_bytes=gpu.memory_total_bytes,
        memory_reserved_bytes=gpu.memory_reserved_bytes,
        clock_reasons=gpu.clock_reasons,
        thermal_violation_s=gpu.thermal_violation_ns / 1e9,
        power_violation_s=gpu.power_violation_ns / 1e9,
        power_brake_s=gpu.power_brake_ns / 1e9,
        sw_thermal_s=gpu.sw_thermal_ns / 1e9,
        hw_thermal_s=gpu.hw_thermal_ns / 1e9,
        ecc_correctable=gpu.ecc_dram_corrected + gpu.ecc_sram_corrected,
        ecc_uncorrectable=gpu.ecc_dram_uncorrected + gpu.ecc_sram_uncorrected,
        ecc_correctable_lifetime=gpu.ecc_dram_corrected_lifetime + gpu.ecc_sram_corrected_lifetime,
        ecc_uncorrectable_lifetime=gpu.ecc_dram_uncorrected_lifetime + gpu.ecc_sram_uncorrected_lifetime,
        sram_correctable=gpu.ecc_sram_corrected,
        sram_uncorrectable=gpu.ecc_sram_uncorrected,
        sram_uncorrectable_lifetime=gpu.ecc_sram_uncorrected_lifetime,
        sram_threshold_exceeded=gpu.sram_threshold_exceeded,
        dram_correctable_lifetime=gpu.ecc_dram_corrected_lifetime,
        dram_uncorrectable_lifetime=gpu.ecc_dram_uncorrected_lifetime,
        remap_correctable=gpu.remap_correctable,
        remap_uncorrectable=gpu.remap_uncorrectable,
        remap_pending=gpu.remap_pending,
        remap_failed=gpu.remap_failed,
        remap_banks_max=gpu.banks[0],
        remap_banks_high=gpu.banks[1],
        remap_banks_partial=gpu.banks[2],
        remap_banks_low=gpu.banks[3],
        remap_banks_none=gpu.banks[4],
        pcie_generation=gpu.pcie_generation,
        pcie_generation_max=gpu.pcie_generation_max,
        pcie_width=gpu.pcie_width,
        pcie_width_max=gpu.pcie_width_max,
        pcie_replays=gpu.pcie_replays,
        pcie_rx_bytes_per_s=float(gpu.pcie_rx_kb_per_s * KIB),
        pcie_tx_bytes_per_s=float(gpu.pcie_tx_kb_per_s * KIB),
        nvlink_rx_bytes=gpu.nvlink_rx_kib * KIB,
        nvlink_tx_bytes=gpu.nvlink_tx_kib * KIB,
        fabric_state=gpu.fabric_state,
        fabric_status=gpu.fabric_status,
        fabric_health_mask=gpu.fabric_health_mask,
        recovery_action=gpu.recovery_action,
        performance_state=gpu.performance_state,
        persistence=gpu.persistence,
        mig_mode=gpu.mig_mode,
        ecc_mode=gpu.ecc_mode,
        ecc_mode_pending=gpu.ecc_mode_pending,
    )


def links_of(gpu: Any) -> dict[str, LinkReadings]:
    """The figures of all NVLinks, by number."""
    return {
        str(number): LinkReadings(
            state=link.state,
            crc_errors=link.crc_errors,
            replays=link.replays,
            recoveries=link.recoveries,
            speed_bytes_per_s=float(link.speed_mb_per_s * MB) if link.state else None,
        )
        for number, link in enumerate(gpu.links[: gpu.link_count])
    }


def processes_of(gpu: Any) -> tuple[GpuProcess, ...]:
    """The processes that the driver lists."""
    return tuple(GpuProcess(pid=row.pid, used_bytes=row.used_bytes) for row in gpu.processes[: gpu.process_count])
