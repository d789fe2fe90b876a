"""Which runbook says what to do about a condition or an incident. They are named after alerts: alerts/runbooks/NAME.md.

Xids and whatever else is not listed lead to the one for a GPU that is faulty or out of service.
"""

from collections.abc import Mapping

INSTALLED = "file:///usr/share/doc/corral/runbooks"  # where docs/install.md puts them
OTHERWISE = "CorralGpuFault"

CODES: Mapping[str, tuple[str, ...]] = {
    "CorralGpuFault": ("gpu_lost", "gpu_requires_reset", "gpu_init_failed", "sram_threshold"),
    "CorralEccUncorrectable": ("ecc_uncorrectable",),
    "CorralEccCorrectable": ("ecc_correctable_rate",),
    "CorralRemapPending": ("remap_pending",),
    "CorralRemapFailed": ("remap_failed",),
    "CorralRetiredPages": ("retired_pages",),
    "CorralRecoveryAction": ("recovery_action",),
    "CorralHardwareSlowdown": ("thermal_slowdown",),
    "CorralPowerBrake": ("power_brake", "power_limit_low", "power_over_limit"),
    "CorralGpuHot": ("thermal_margin",),
    "CorralGpuHung": ("activity_contradiction",),
    "CorralGpuThrottled": ("slow_gpu",),
    "CorralNvlinkDown": ("nvlink_down",),
    "CorralFabric": ("nvlink_errors", "nvlink_slow", "fabric_incomplete", "fabric_unhealthy"),
    "CorralPcie": ("pcie_width", "pcie_generation", "pcie_replays", "aer"),
    "CorralSilentCorruption": ("silent_corruption",),
    "CorralGpuMemory": ("unknown_consumer", "memory_zombie", "memory_leak", "process_info_mismatch"),
    "CorralProfilingBroken": ("profiling_broken", "counter_saturated"),
    "CorralNodeBlind": ("node_unknown",),
    "CorralNodeLost": ("node_lost",),
    "CorralGpuMissing": ("gpu_missing", "gpu_count_mismatch", "mig_instance_missing"),
    "CorralDriver": ("driver_library_mismatch", "driver_not_loaded", "driver_hang", "probe_hung", "stuck_in_kernel"),
    "CorralSourceDown": ("monitor_unreachable", "probe_permission"),
    "CorralVersionDrift": ("version_drift",),
    "CorralClockSkew": ("kernel_clock_skew",),
    "CorralNicDown": ("nic_down", "nic_command_failed"),
    "CorralNicFlapping": ("nic_flap",),
    "CorralHostErrors": ("mce", "filesystem_error", "disk_error", "oom_kill", "service_flapping"),
    "CorralCheckFailed": ("check_failed",),
    "CorralBlackHole": ("placement_black_hole",),
    "CorralReplicaWedged": ("replica_stalled", "collective_timeout"),
    "CorralCrashLoop": ("crash_loop", "replica_died"),
    "CorralReplicaUnwell": (
        "replica_unhealthy",
        "replica_wrong_gpu",
        "replica_failed_cleanup",
        "container_device_access_lost",
    ),
    "CorralTooMuchSick": ("too_much_sick",),
    "CorralLemons": ("lemon",),
    "CorralOtherRemediator": ("other_remediator", "gpu_claimed_twice"),
    "CorralProbeUnknown": ("probe_slow", "probe_degraded", "probe_incomplete"),
    "CorralKernelRecordsLost": ("kernel_records_lost",),
}
_OF: Mapping[str, str] = {code: name for name, codes in CODES.items() for code in codes}


def runbook(code: str) -> str:
    """The name of the runbook about an incident or condition of this code."""
    return _OF.get(code, OTHERWISE)
