"""DCGM's numbers by name (dcgm_structs.h, dcgm_errors.h of 3.1 to 4.6), and what a person does about them."""

STATUS: dict[int, str] = {
    -1: "BADPARAM",
    -3: "GENERIC_ERROR",
    -4: "MEMORY",
    -5: "NOT_CONFIGURED",
    -6: "NOT_SUPPORTED",
    -7: "INIT_ERROR",
    -8: "NVML_ERROR",
    -9: "PENDING",
    -10: "UNINITIALIZED",
    -11: "TIMEOUT",
    -12: "VER_MISMATCH",
    -13: "UNKNOWN_FIELD",
    -14: "NO_DATA",
    -15: "STALE_DATA",
    -16: "NOT_WATCHED",
    -17: "NO_PERMISSION",
    -18: "GPU_IS_LOST",
    -19: "RESET_REQUIRED",
    -20: "FUNCTION_NOT_FOUND",
    -21: "CONNECTION_NOT_VALID",
    -22: "GPU_NOT_SUPPORTED",
    -23: "GROUP_INCOMPATIBLE",
    -24: "MAX_LIMIT",
    -25: "LIBRARY_NOT_FOUND",
    -26: "DUPLICATE_KEY",
    -29: "REQUIRES_ROOT",
    -30: "NVVS_ERROR",
    -32: "FIELD_UNSUPPORTED_BY_API",
    -33: "MODULE_NOT_LOADED",
    -34: "IN_USE",
    -35: "GROUP_IS_EMPTY",
    -36: "PROFILING_NOT_SUPPORTED",
    -37: "PROFILING_LIBRARY_ERROR",
    -38: "PROFILING_MULTI_PASS",
    -39: "DIAG_ALREADY_RUNNING",
    -44: "INSUFFICIENT_DRIVER_VERSION",
    -49: "INSUFFICIENT_RESOURCES",
    -51: "NVVS_ISOLATE_ERROR",
    -52: "NVVS_BINARY_NOT_FOUND",
    -53: "NVVS_KILLED",
    -54: "PAUSED",
    -56: "NVML_NOT_LOADED",
    -57: "NVML_DRIVER_TIMEOUT",
    -67: "GPUS_DETACHED",
}

# The connection is of no use any more: groups and watches are made anew on the next one.
GONE = frozenset({"CONNECTION_NOT_VALID", "UNINITIALIZED", "TIMEOUT"})

# Status of a GPU in the host engine. A lost one keeps giving values of status 0, all blank.
GPU_OK, GPU_FAKE = 1, 5
GPU_STATUS: dict[int, str] = {
    0: "NOT_READY",  # not referenced yet
    2: "NOT_SUPPORTED",
    3: "NO_PERMISSION",  # inaccessible, usually by cgroup
    4: "GPU_IS_LOST",
    6: "NOT_READY",  # disabled: no values are collected
    7: "NOT_READY",  # detached on purpose
}

SYSTEMS: dict[int, str] = {  # health watches by bit
    0x1: "pcie",
    0x2: "nvlink",
    0x4: "pmu",
    0x8: "mcu",
    0x10: "memory",
    0x20: "sm",
    0x40: "inforom",
    0x80: "thermal",
    0x100: "power",
    0x200: "driver",
    0x400: "nvswitch_nonfatal",
    0x800: "nvswitch_fatal",
    0x1000: "connectx",
    0xFFFFFFFF: "any",  # what concerns no one system
}

# Errors of health watches and diagnostics, from 0 on (DCGM_FR_…).
_ERRORS = """
OK UNKNOWN UNRECOGNIZED PCI_REPLAY_RATE VOLATILE_DBE_DETECTED VOLATILE_SBE_DETECTED PENDING_PAGE_RETIREMENTS
RETIRED_PAGES_LIMIT RETIRED_PAGES_DBE_LIMIT CORRUPT_INFOROM CLOCKS_EVENT_THERMAL POWER_UNREADABLE CLOCKS_EVENT_POWER
NVLINK_ERROR_THRESHOLD NVLINK_DOWN NVSWITCH_FATAL_ERROR NVSWITCH_NON_FATAL_ERROR NVSWITCH_DOWN NO_ACCESS_TO_FILE
NVML_API DEVICE_COUNT_MISMATCH BAD_PARAMETER CANNOT_OPEN_LIB DENYLISTED_DRIVER NVML_LIB_BAD GRAPHICS_PROCESSES
HOSTENGINE_CONN FIELD_QUERY BAD_CUDA_ENV PERSISTENCE_MODE LOW_BANDWIDTH HIGH_LATENCY CANNOT_GET_FIELD_TAG
FIELD_VIOLATION FIELD_THRESHOLD FIELD_VIOLATION_DBL FIELD_THRESHOLD_DBL UNSUPPORTED_FIELD_TYPE FIELD_THRESHOLD_TS
FIELD_THRESHOLD_TS_DBL THERMAL_VIOLATIONS THERMAL_VIOLATIONS_TS TEMP_VIOLATION CLOCKS_EVENT_VIOLATION INTERNAL
PCIE_GENERATION PCIE_WIDTH ABORTED TEST_DISABLED CANNOT_GET_STAT STRESS_LEVEL CUDA_API FAULTY_MEMORY CANNOT_SET_WATCHES
CUDA_UNBOUND ECC_DISABLED MEMORY_ALLOC CUDA_DBE MEMORY_MISMATCH CUDA_DEVICE ECC_UNSUPPORTED ECC_PENDING
MEMORY_BANDWIDTH TARGET_POWER API_FAIL API_FAIL_GPU CUDA_CONTEXT DCGM_API CONCURRENT_GPUS TOO_MANY_ERRORS
NVLINK_CRC_ERROR_THRESHOLD NVLINK_ERROR_CRITICAL ENFORCED_POWER_LIMIT MEMORY_ALLOC_HOST GPU_OP_MODE NO_MEMORY_CLOCKS
NO_GRAPHICS_CLOCKS HAD_TO_RESTORE_STATE L1TAG_UNSUPPORTED L1TAG_MISCOMPARE ROW_REMAP_FAILURE UNCONTAINED_ERROR
EMPTY_GPU_LIST DBE_PENDING_PAGE_RETIREMENTS UNCORRECTABLE_ROW_REMAP PENDING_ROW_REMAP BROKEN_P2P_MEMORY_DEVICE
BROKEN_P2P_WRITER_DEVICE NVSWITCH_NVLINK_DOWN EUD_BINARY_PERMISSIONS EUD_NON_ROOT_USER EUD_SPAWN_FAILURE EUD_TIMEOUT
EUD_ZOMBIE EUD_NON_ZERO_EXIT_CODE EUD_TEST_FAILED FILE_CREATE_PERMISSIONS PAUSE_RESUME_FAILED PCIE_H_REPLAY_VIOLATION
GPU_EXPECTED_NVLINKS_UP NVSWITCH_EXPECTED_NVLINKS_UP XID_ERROR SBE_VIOLATION DBE_VIOLATION PCIE_REPLAY_VIOLATION
SBE_THRESHOLD_VIOLATION DBE_THRESHOLD_VIOLATION PCIE_REPLAY_THRESHOLD_VIOLATION CUDA_FM_NOT_INITIALIZED SXID_ERROR
GFLOPS_THRESHOLD_VIOLATION NAN_VALUE FABRIC_MANAGER_TRAINING_ERROR BROKEN_P2P_PCIE_MEMORY_DEVICE
BROKEN_P2P_PCIE_WRITER_DEVICE BROKEN_P2P_NVLINK_MEMORY_DEVICE BROKEN_P2P_NVLINK_WRITER_DEVICE TEST_SKIPPED
SRAM_THRESHOLD NVLINK_EFFECTIVE_BER_THRESHOLD FALLEN_OFF_BUS NVLINK_SYMBOL_BER_THRESHOLD IMEX_UNHEALTHY
FABRIC_PROBE_STATE BINARY_PERMISSIONS GPU_RECOVERY_RESET GPU_RECOVERY_REBOOT GPU_RECOVERY_DRAIN_P2P
GPU_RECOVERY_DRAIN_RESET NCCL_ERROR RETEST_REQUESTED CONTAINED_ERROR UNCORRECTABLE_ROW_REMAP_LIMIT
"""
ERRORS: tuple[str, ...] = tuple(_ERRORS.split())

_NEXT_STEP = {
    "BINDINGS_NOT_FOUND": "DCGM's Python bindings were not found: install datacenter-gpu-manager-4-core, or set"
    " dcgm_bindings to their folder",
    "BINDINGS_UNUSABLE": "DCGM's Python bindings cannot be imported: see the lines above in this log",
    "LIBRARY_NOT_FOUND": "libdcgm was not found: install datacenter-gpu-manager-4-core, or add its folder to"
    " LD_LIBRARY_PATH of the agent",
    "ENGINE_NOT_FOUND": "no host engine answers there: systemctl start nvidia-dcgm",
    "ENGINE_NOT_TRUSTED": "who listens on localhost:5555 is neither root nor the agent's user: name it with"
    ' dcgm = "localhost:5555" if it is your host engine',
    "ENGINE_RUNNING": 'a host engine runs on this node: use it with dcgm = "localhost:5555"; a second one is refused',
    "CONNECTION_NOT_VALID": "the connection to the host engine broke: see systemctl status nvidia-dcgm",
    "TIMEOUT": "the host engine did not answer in time: see systemctl status nvidia-dcgm",
    "VER_MISMATCH": "bindings, libdcgm and host engine are of different versions: restart nvidia-dcgm after an upgrade,"
    " and set dcgm_bindings to those of the same release",
    "NVML_NOT_LOADED": "the host engine has no driver: restart nvidia-dcgm once the driver is loaded",
    "PROFILING_LIBRARY_ERROR": "another tool holds the GPUs' performance counters (Nsight, CUPTI, a second host"
    " engine): end it, or leave DCGM's profiling off",
    "IN_USE": "another tool holds the GPUs' performance counters: end it, or leave DCGM's profiling off",
    "REQUIRES_ROOT": "this host engine may not read that: run nvidia-dcgm as root",
    "NO_PERMISSION": "this host engine may not read that: run nvidia-dcgm as root",
    "UNKNOWN_FIELD": "this release of DCGM does not know all of the readings; the others go on",
    "NVVS_BINARY_NOT_FOUND": "DCGM's diagnostics are not installed: install datacenter-gpu-manager-4-cuda13 (or the one"
    " of your CUDA)",
    "DIAG_ALREADY_RUNNING": "somebody else's diagnostic runs: wait for its end",
    "HUNG": "a call to DCGM does not come back; what it would tell is unknown",
    "NOT_STARTED": "the process that reads DCGM cannot be started: see the lines above in this log",
    "CHILD_DIED": "the process that reads DCGM has ended: see the lines above in this log",
    "INVENTORY_CHANGED": "the host engine lists other GPUs now: groups and watches are made anew",
}


def status_name(code: int) -> str:
    """The name of a return code, without its prefix."""
    return STATUS.get(code, f"DCGM_{abs(code)}")


def error_name(code: int) -> str:
    """The name of an error of a health watch or a diagnostic: ``DCGM_FR_…``."""
    return f"DCGM_FR_{ERRORS[code]}" if 0 <= code < len(ERRORS) else f"DCGM_FR_{code}"


def explain(error: str) -> str:
    """``NAME: what it means and what to do``; the part before the colon is for programs."""
    return f"{error}: {_NEXT_STEP.get(error, 'see the log of nvidia-dcgm and what dcgmi discovery -l says')}"
