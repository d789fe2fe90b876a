"""NVML's return codes by name (nvml.h, without the prefix), and what a person does about them."""

ERROR_NAMES: dict[int, str] = {
    1: "UNINITIALIZED",
    2: "INVALID_ARGUMENT",
    3: "NOT_SUPPORTED",
    4: "NO_PERMISSION",
    6: "NOT_FOUND",
    7: "INSUFFICIENT_SIZE",
    8: "INSUFFICIENT_POWER",
    9: "DRIVER_NOT_LOADED",
    10: "TIMEOUT",
    11: "IRQ_ISSUE",
    12: "LIBRARY_NOT_FOUND",
    13: "FUNCTION_NOT_FOUND",
    14: "CORRUPTED_INFOROM",
    15: "GPU_IS_LOST",
    16: "RESET_REQUIRED",
    17: "OPERATING_SYSTEM",
    18: "LIB_RM_VERSION_MISMATCH",
    19: "IN_USE",
    20: "MEMORY",
    21: "NO_DATA",
    22: "VGPU_ECC_NOT_SUPPORTED",
    23: "INSUFFICIENT_RESOURCES",
    24: "FREQ_NOT_SUPPORTED",
    25: "ARGUMENT_VERSION_MISMATCH",
    26: "DEPRECATED",
    27: "NOT_READY",
    28: "GPU_NOT_FOUND",
    29: "INVALID_STATE",
    30: "RESET_TYPE_NOT_SUPPORTED",
    999: "UNKNOWN",
}

NEVER_SUPPORTED = frozenset({"NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED"})
# A lost GPU shows as any of these, or as UNKNOWN, depending on driver and moment.
LOST = frozenset({"GPU_IS_LOST", "RESET_REQUIRED", "GPU_NOT_FOUND"})

_NEXT_STEP = {
    "LIBRARY_NOT_FOUND": "libnvidia-ml.so.1 was not found: install the NVIDIA driver, or set nvml_library to its path",
    "DRIVER_NOT_LOADED": "the NVIDIA kernel driver is not loaded: run modprobe nvidia, and see dmesg if that fails",
    "NO_PERMISSION": "the agent's user may not use the GPUs: see the owner and mode of /dev/nvidia*",
    "OPERATING_SYSTEM": "the GPUs are blocked for this process: see its device cgroup",
    "LIB_RM_VERSION_MISMATCH": "the driver was upgraded without a reload: reload the nvidia modules or reboot the node",
    "PACKAGE_NOT_FOUND": "the Python package nvidia-ml-py is not installed: pip install 'corral[agent]'",
    "HUNG": "driver calls do not come back: what the GPUs would tell is unknown; see the kernel log",
    "SILENT": "the process that reads NVML stands still: see its state in ps, and how busy the node is",
    "NOT_STARTED": "the process that reads NVML cannot be started: see the lines above in this log",
    "CHILD_DIED": "the process that reads NVML has ended: see the lines above in this log",
}


def explain(error: str) -> str:
    """``NAME: what it means and what to do``; the part before the colon is for programs."""
    return f"{error}: {_NEXT_STEP.get(error, 'NVML cannot be used; see what nvidia-smi says')}"
