"""What the agent exports: the readings of every GPU, its faults, and how the agent itself is.

GPU series carry the UUID as ``gpu`` and nothing else; index, name and address stand on
``corral_gpu_info`` alone, to be joined. A reading that is missing, refused or old has no series: absence
is *unknown*, never 0. ``READINGS`` says which field of vocab.readings fills which metric.
"""

from vocab.metrics.row import Kind, Metric

_G, _C = Kind.GAUGE, Kind.COUNTER
_GPU = ("gpu",)


def _row(name: str, kind: Kind, text: str, *labels: str) -> Metric:
    return Metric(f"corral_{name}", kind, text, labels)


def _reading(field: str, name: str, text: str, kind: Kind = _G) -> tuple[str, Metric]:
    return field, Metric(f"corral_gpu_{name}", kind, text, _GPU)


READINGS: dict[str, Metric] = dict(
    (
        _reading("temperature_c", "temperature_celsius", "Temperature of the GPU core."),
        _reading("memory_temperature_c", "memory_temperature_celsius", "Temperature of the GPU's memory."),
        _reading("margin_c", "temperature_margin_celsius", "Degrees left before the GPU slows itself down."),
        _reading("slowdown_c", "slowdown_celsius", "Temperature at which the hardware slows down."),
        _reading("power_w", "power_watts", "Power drawn by the board."),
        _reading("power_limit_w", "power_limit_watts", "Power that the board may draw."),
        _reading("energy_j", "energy_joules_total", "Energy used since the driver was loaded.", _C),
        _reading("sm_clock_hz", "sm_clock_hertz", "Clock of the SMs."),
        _reading("memory_clock_hz", "memory_clock_hertz", "Clock of the memory."),
        _reading(
            "utilization_ratio", "utilization_ratio", "Share of time with any kernel running. Not a measure of work."
        ),
        _reading("memory_utilization_ratio", "memory_utilization_ratio", "Share of time with memory being accessed."),
        _reading(
            "sm_active_ratio", "sm_active_ratio", "Share of SM-cycles with at least one warp: the work that is done."
        ),
        _reading("sm_occupancy_ratio", "sm_occupancy_ratio", "Resident warps against the most that fit."),
        _reading("tensor_active_ratio", "tensor_active_ratio", "Share of cycles with the tensor pipe active."),
        _reading("dram_active_ratio", "dram_active_ratio", "Share of cycles with the memory moving data."),
        _reading("memory_used_bytes", "memory_used_bytes", "Memory in use."),
        _reading("memory_total_bytes", "memory_total_bytes", "Memory of the GPU."),
        _reading("clock_reasons", "clock_reasons_mask", "Bit mask of why clocks are not higher, as NVML gives it."),
        _reading("thermal_violation_s", "thermal_violation_seconds_total", "Time slowed down by heat.", _C),
        _reading("power_violation_s", "power_violation_seconds_total", "Time slowed down by the power limit.", _C),
        _reading("power_brake_s", "power_brake_seconds_total", "Time slowed down by the external power brake.", _C),
        _reading("ecc_correctable", "ecc_correctable_total", "Corrected memory errors since driver load or reset.", _C),
        _reading("ecc_uncorrectable", "ecc_uncorrectable_total", "Uncorrected memory errors since load or reset.", _C),
        _reading("remap_correctable", "remapped_rows_correctable", "Rows remapped after correctable errors."),
        _reading("remap_uncorrectable", "remapped_rows_uncorrectable", "Rows remapped after uncorrectable errors."),
        _reading("remap_pending", "remap_pending", "1 while a row remap waits for a reset."),
        _reading("remap_failed", "remap_failed", "1 once a row could not be remapped."),
        _reading("pcie_generation", "pcie_generation", "PCIe generation of the link now (falls at idle)."),
        _reading("pcie_width", "pcie_width_lanes", "PCIe lanes of the link now."),
        _reading("pcie_replays", "pcie_replays_total", "PCIe packets sent again.", _C),
        _reading("pcie_rx_bytes_per_s", "pcie_receive_bytes_per_second", "PCIe traffic to the GPU."),
        _reading("pcie_tx_bytes_per_s", "pcie_transmit_bytes_per_second", "PCIe traffic from the GPU."),
        _reading("nvlink_rx_bytes", "nvlink_receive_bytes_total", "NVLink traffic to the GPU, all links.", _C),
        _reading("nvlink_tx_bytes", "nvlink_transmit_bytes_total", "NVLink traffic from the GPU, all links.", _C),
        _reading("fabric_state", "fabric_state", "NVLink fabric registration: 3 is completed."),
        _reading("recovery_action", "recovery_action", "What the driver asks for: 0 is nothing."),
        _reading("fan_ratio", "fan_ratio", "Fan speed against its most."),
    )
)

GPU: tuple[Metric, ...] = (
    *READINGS.values(),
    _row("gpu_info", Kind.INFO, "What the GPU is; 1.", "gpu", "index", "name", "pci", "node", "virtual"),
    _row("gpu_up", _G, "1 if the last read of the GPU worked, 0 if it failed or is too old.", "gpu"),
    _row("gpu_last_read_timestamp_seconds", _G, "When the GPU was last read with success.", "gpu"),
    _row("gpu_activity", _G, "1 for the word that says what the GPU does; what throttles it.", "gpu", "doing", "by"),
    _row("gpu_activity_ratio", _G, "Share of the roof that binds it, or of its time: see docs/utilization.md.", "gpu"),
    _row("gpu_fenced", _G, "1 while this agent fences the GPU.", "gpu"),
    _row("gpu_held", _G, "Holds of the controller on the GPU.", "gpu"),
    _row("gpu_nvlinks_down", _G, "NVLinks of the GPU that are not up.", "gpu"),
    _row("gpu_nvlink_errors_total", _C, "CRC errors, replays and recoveries of all NVLinks of the GPU.", "gpu"),
    _row("gpu_nvlink_errors_worst", _G, "The same of the link that has the most.", "gpu"),
    _row("gpu_xids_total", _C, "Xid errors of any code that the kernel log reported, injected ones left out.", "gpu"),
    _row("gpu_xid_errors_total", _C, "Xid errors by code; critical codes are there from the start.", "gpu", "xid"),
)

FULL: dict[str, Metric] = dict(
    (
        _reading("graphics_active_ratio", "graphics_active_ratio", "Share of time with the compute engine active."),
        _reading("performance_state", "performance_state", "P-state, 0 is the fastest."),
        _reading("shutdown_c", "shutdown_celsius", "Temperature at which the GPU switches off."),
        _reading("sm_clock_max_hz", "sm_clock_max_hertz", "Highest clock of the SMs."),
        _reading("power_limit_min_w", "power_limit_min_watts", "Lowest power limit that can be set."),
        _reading("power_limit_max_w", "power_limit_max_watts", "Highest power limit that can be set."),
        _reading("power_limit_default_w", "power_limit_default_watts", "Power limit that the GPU boots with."),
        _reading("memory_reserved_bytes", "memory_reserved_bytes", "Memory kept by driver and firmware."),
        _reading("sw_thermal_s", "sw_thermal_seconds_total", "Time slowed down by the driver for heat.", _C),
        _reading("hw_thermal_s", "hw_thermal_seconds_total", "Time slowed down by the hardware for heat.", _C),
        _reading("ecc_mode", "ecc_mode", "1 while ECC is on."),
        _reading("ecc_mode_pending", "ecc_mode_pending", "ECC after the next reset."),
        _reading("ecc_correctable_lifetime", "ecc_correctable_lifetime_total", "Corrected errors of its life.", _C),
        _reading(
            "ecc_uncorrectable_lifetime", "ecc_uncorrectable_lifetime_total", "Uncorrected errors of its life.", _C
        ),
        _reading("sram_correctable", "sram_correctable_total", "Corrected errors of the SRAM since reset.", _C),
        _reading("sram_uncorrectable", "sram_uncorrectable_total", "Uncorrected errors of the SRAM since reset.", _C),
        _reading("sram_uncorrectable_lifetime", "sram_uncorrectable_lifetime_total", "The same of its life.", _C),
        _reading("sram_threshold_exceeded", "sram_threshold_exceeded", "1 once the SRAM has had too many errors."),
        _reading("dram_correctable_lifetime", "dram_correctable_lifetime_total", "Corrected errors of the DRAM.", _C),
        _reading("dram_uncorrectable_lifetime", "dram_uncorrectable_lifetime_total", "Uncorrected errors of it.", _C),
        _reading("remap_banks_max", "remap_banks_max", "Memory banks with all spare rows left."),
        _reading("remap_banks_high", "remap_banks_high", "Memory banks with many spare rows left."),
        _reading("remap_banks_partial", "remap_banks_partial", "Memory banks with some spare rows left."),
        _reading("remap_banks_low", "remap_banks_low", "Memory banks with few spare rows left."),
        _reading("remap_banks_none", "remap_banks_none", "Memory banks with no spare row left."),
        _reading("retired_pages_sbe", "retired_pages_single_bit", "Pages retired after single-bit errors."),
        _reading("retired_pages_dbe", "retired_pages_double_bit", "Pages retired after double-bit errors."),
        _reading("retirement_pending", "retirement_pending", "1 while pages wait to be retired."),
        _reading("pcie_generation_max", "pcie_generation_max", "Best PCIe generation of GPU and slot."),
        _reading("pcie_width_max", "pcie_width_max_lanes", "Most PCIe lanes of GPU and slot."),
        _reading(
            "nvlink_megabytes_per_s",
            "nvlink_megabytes_per_second",
            "NVLink traffic now, all links: DCGM's field 449, called a counter there and none: not for rate().",
        ),
        _reading("fabric_status", "fabric_status", "NVML's return code of the fabric registration."),
        _reading("fabric_health_mask", "fabric_health_mask", "Bit mask of the fabric's health, as NVML gives it."),
        _reading("persistence", "persistence", "1 while the driver stays loaded without clients."),
        _reading("mig_mode", "mig_mode", "1 while the GPU is partitioned."),
    )
)
_LINK = ("gpu", "link")
_INSTANCE = ("gpu", "gi", "ci")
LINK: dict[str, Metric] = {
    "state": _row("gpu_nvlink_up", _G, "1 while the link is up.", *_LINK),
    "crc_errors": _row("gpu_nvlink_crc_errors_total", _C, "CRC errors of the link.", *_LINK),
    "replays": _row("gpu_nvlink_replays_total", _C, "Replays of the link.", *_LINK),
    "recoveries": _row("gpu_nvlink_recoveries_total", _C, "Recoveries of the link.", *_LINK),
    "effective_ber": _row("gpu_nvlink_effective_ber", _G, "Bit error rate after correction (NVLink 5).", *_LINK),
    "symbol_ber": _row("gpu_nvlink_symbol_ber", _G, "Symbol error rate (NVLink 5).", *_LINK),
    "speed_bytes_per_s": _row("gpu_nvlink_speed_bytes_per_second", _G, "Speed of the link, each way.", *_LINK),
}
INSTANCE: dict[str, Metric] = {
    "memory_used_bytes": _row("gpu_instance_memory_used_bytes", _G, "Memory in use of a MIG instance.", *_INSTANCE),
    "memory_total_bytes": _row("gpu_instance_memory_total_bytes", _G, "Memory of a MIG instance.", *_INSTANCE),
    "graphics_active_ratio": _row("gpu_instance_graphics_active_ratio", _G, "Share of time it works.", *_INSTANCE),
    "sm_active_ratio": _row("gpu_instance_sm_active_ratio", _G, "Share of its SM-cycles with a warp.", *_INSTANCE),
    "tensor_active_ratio": _row("gpu_instance_tensor_active_ratio", _G, "Its tensor pipe active.", *_INSTANCE),
    "dram_active_ratio": _row("gpu_instance_dram_active_ratio", _G, "Its memory moving data.", *_INSTANCE),
    "sram_uncorrectable": _row("gpu_instance_sram_uncorrectable_total", _C, "Its uncorrected errors.", *_INSTANCE),
}
FIRMWARE = _row("gpu_firmware_info", Kind.INFO, "Versions on the GPU; 1.", "gpu", "vbios", "inforom", "gsp", "cuda")
DEMANDED: tuple[Metric, ...] = (*FULL.values(), *LINK.values(), *INSTANCE.values(), FIRMWARE)  # only by ?full=1

ENGINE_FIGURES: dict[str, Metric] = {  # by the field of an observed look at a replica
    "step": _row("agent_engine_steps_total", _C, "Steps, as the engine itself counts them.", "replica"),
    "tokens": _row("agent_engine_tokens_total", _C, "Tokens, as the engine itself counts them.", "replica"),
    "running": _row("agent_engine_running_requests", _G, "Requests in the batch, as the engine says.", "replica"),
    "waiting": _row("agent_engine_waiting_requests", _G, "Requests that wait, as the engine says.", "replica"),
    "kv_ratio": _row("agent_engine_kv_cache_ratio", _G, "KV cache in use, as the engine says.", "replica"),
    "requests_ok": _row(
        "agent_engine_requests_ok_total", _C, "Requests that went well, as the engine itself counts them.", "replica"
    ),
    "requests_failed": _row(
        "agent_engine_requests_failed_total", _C, "Requests that failed, as the engine itself counts them.", "replica"
    ),
}
SELF: tuple[Metric, ...] = (
    _row("agent_build_info", Kind.INFO, "Version of this process.", "version"),
    _row("agent_node_info", Kind.INFO, "What this node is; 1.", "node", "virtual", "driver", "level"),
    _row("agent_gpus", _G, "GPUs in the node's inventory."),
    _row("agent_source_up", _G, "1 while a source of readings works.", "source"),
    _row("agent_source_last_success_timestamp_seconds", _G, "When the source last read a GPU.", "source"),
    _row(
        "agent_reads_total", _C, "Reads of a GPU: whole, partial (something was unknown) or failed.", "source", "result"
    ),
    _row("agent_rejected_values_total", _C, "Values read that cannot be, and so are absent, by reading.", "field"),
    _row("agent_read_seconds", _G, "The longest read of a GPU in the last round.", "source"),
    _row("agent_call_seconds", _G, "How long the slowest driver call under way is overdue.", "source"),
    _row(
        "agent_child_restarts_total",
        _C,
        "Starts of the process that holds a driver's library, but the first.",
        "source",
    ),
    _row("agent_observations_total", _C, "Observations taken in, by kind.", "obs"),
    _row("agent_events_total", _C, "Events judged (first revisions), by severity.", "severity"),
    _row("agent_injected_events_total", _C, "Events that a test tool wrote; they lead to nothing."),
    _row("agent_kernel_records_lost_total", _C, "Kernel records that were overwritten before they were read."),
    _row(
        "agent_failures_total",
        _C,
        "Inputs or requests that this agent failed to handle; its log has the details.",
        "part",
    ),
    _row("agent_fences_total", _C, "Fences by what became of them.", "op"),
    _row("agent_repairs_total", _C, "Resets, reboots and validations by order, by what became of them.", "of", "state"),
    _row("agent_spool_items", _G, "Items that the controller has not confirmed."),
    _row("agent_spool_bytes", _G, "Bytes of the spool on disk."),
    _row("agent_spool_dropped_total", _C, "Items dropped because the spool was full, least severe first."),
    _row("agent_uplink_up", _G, "1 while the controller answers."),
    _row("agent_uplink_batches_total", _C, "Batches sent, by result.", "result"),
    _row("agent_uplink_last_success_timestamp_seconds", _G, "When the controller last confirmed a batch."),
    _row("agent_desired_generation", _G, "Generation of the desired state that this node has taken."),
    _row("agent_paused", _G, "1 while the PAUSE file or the controller forbids harmful acts."),
    _row("agent_replicas", _G, "Replicas on this node by phase.", "phase"),
    Metric(
        "corral_agent_take_seconds",
        Kind.HISTOGRAM,
        "Time from an observation's arrival to its judgement, fence and record.",
        (),
        (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    ),
)

AGENT: tuple[Metric, ...] = (*SELF, *ENGINE_FIGURES.values(), *GPU, *DEMANDED)
