"""CUDA errors that end an engine: whom each one blames. What an engine reports as its ``error``, or prints as it dies.

Numbers and words are those of CUDA 13's driver_types.h and of cudaGetErrorString. After any of them but an
allocation failure the process cannot compute any more: the header itself says that it must be started anew.
Programs print the number, the words, or the name that the runtime or the driver's own interface has for it.
"""

import re
from enum import StrEnum

import msgspec


class Blame(StrEnum):
    """Where the fault lies, as far as the error alone can tell."""

    GPU = "gpu"  # the hardware reports it itself
    FABRIC = "fabric"  # a link or the GPU at its other end
    LOST = "lost"  # the GPU does not answer, or is kept from us
    HANG = "hang"  # a kernel did not come back
    SOFTWARE = "software"  # a bug of the program first; the hardware only if it moves with the GPU
    AMBIGUOUS = "ambiguous"  # once is chance, twice on one GPU a suspicion
    NODE = "node"  # driver, fabric manager or MPS of the node
    MEMORY = "memory"  # no fault: the allocation did not fit


class CudaError(msgspec.Struct, frozen=True):
    """One error: its number, its name without prefix, the words that programs print."""

    code: int
    name: str
    words: str
    blame: Blame

    @property
    def is_sticky(self) -> bool:
        """Whether the process is beyond help."""
        return self.blame is not Blame.MEMORY


B = Blame
# fmt: off
_ROWS: tuple[tuple[int, str, str, Blame], ...] = (
    (2, "MemoryAllocation", "out of memory", B.MEMORY),
    (3, "InitializationError", "initialization error", B.NODE),
    (35, "InsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version", B.NODE),
    (46, "DevicesUnavailable", "all CUDA-capable devices are busy or unavailable", B.LOST),
    (100, "NoDevice", "no CUDA-capable device is detected", B.LOST),
    (101, "InvalidDevice", "invalid device ordinal", B.LOST),
    (201, "DeviceUninitialized", "invalid device context", B.LOST),
    (209, "NoKernelImageForDevice", "no kernel image is available for execution on the device", B.SOFTWARE),
    (214, "ECCUncorrectable", "uncorrectable ECC error encountered", B.GPU),
    (220, "NvlinkUncorrectable", "uncorrectable NVLink error detected during the execution", B.FABRIC),
    (222, "UnsupportedPtxVersion", "the provided PTX was compiled with an unsupported toolchain", B.NODE),
    (226, "Contained", "Invalid access of peer GPU memory over nvlink or a hardware error", B.FABRIC),
    (700, "IllegalAddress", "an illegal memory access was encountered", B.SOFTWARE),
    (702, "LaunchTimeout", "the launch timed out and was terminated", B.HANG),
    (710, "Assert", "device-side assert triggered", B.SOFTWARE),
    (714, "HardwareStackError", "hardware stack error", B.AMBIGUOUS),
    (715, "IllegalInstruction", "an illegal instruction was encountered", B.AMBIGUOUS),
    (716, "MisalignedAddress", "misaligned address", B.SOFTWARE),
    (717, "InvalidAddressSpace", "operation not supported on global/shared address space", B.SOFTWARE),
    (718, "InvalidPc", "invalid program counter", B.SOFTWARE),
    (719, "LaunchFailure", "unspecified launch failure", B.AMBIGUOUS),
    (721, "TensorMemoryLeak", "tensor memory not completely freed", B.AMBIGUOUS),
    (802, "SystemNotReady", "system not yet initialized", B.NODE),
    (803, "SystemDriverMismatch", "system has unsupported display driver / cuda driver combination", B.NODE),
    (804, "CompatNotSupportedOnDevice", "forward compatibility was attempted on non supported HW", B.NODE),
    (805, "MpsConnectionFailed", "MPS client failed to connect to the MPS control daemon or the MPS server", B.NODE),
    (806, "MpsRpcFailure", "the remote procedural call between the MPS server and the MPS client failed", B.NODE),
    (807, "MpsServerNotReady", "MPS server is not ready to accept new MPS client requests", B.NODE),
    (808, "MpsMaxClientsReached", "maximum number of clients that can be created has been reached", B.NODE),
    (809, "MpsMaxConnectionsReached", "maximum number of device connections has been reached", B.NODE),
    (810, "MpsClientTerminated", "the MPS client has been terminated by the server", B.NODE),
    (909, "Timeout", "wait operation timed out", B.HANG),
    (999, "Unknown", "unknown error", B.LOST),
)
# fmt: on
CUDA_ERRORS: dict[int, CudaError] = {row[0]: CudaError(*row) for row in _ROWS}
_TELLING = [known for known in CUDA_ERRORS.values() if len(known.words) > len("unknown error") or known.code == 2]
_NVML: dict[str, CudaError] = {
    "GPU_IS_LOST": CudaError(0, "GPU_IS_LOST", "GPU is lost", Blame.LOST),
    "RESET_REQUIRED": CudaError(0, "RESET_REQUIRED", "GPU requires reset", Blame.GPU),
    "GPU_REQUIRES_RESET": CudaError(0, "GPU_REQUIRES_RESET", "GPU requires reset", Blame.GPU),
}
_BY_NAME = {known.name.lower(): known for known in CUDA_ERRORS.values()} | {
    driver: CUDA_ERRORS[code]  # where the driver's interface has another name for it than the runtime
    for driver, code in (
        ("outofmemory", 2),
        ("notinitialized", 3),
        ("deviceunavailable", 46),
        ("nobinaryforgpu", 209),
        ("invalidcontext", 201),
        ("launchfailed", 719),
    )
}
_NAMED = re.compile(r"\b(?:cudaError|CUDA_ERROR_)(?!_t\b)(\w+)")
_STATED = r"cuda(?: driver)?[ _]?(?:error|failure)"
_NUMBERED = re.compile(rf"{_STATED}[ :=(]*(?:code[ :=]*)?(\d{{1,3}})\b|\bError (\d{{3}}):", re.IGNORECASE)
_UNKNOWN = re.compile(rf"{_STATED}[: '\"]+unknown error", re.IGNORECASE)
_DIGITS = 4  # of a code; programs write all sorts of things where one should stand
_NO_DEVICE = "No CUDA GPUs are available"  # PyTorch's own words


def known_error(error: int | str | None) -> CudaError | None:
    """The row of what an engine reports: a CUDA code (as number, text or name), or the name of an NVML error."""
    if not isinstance(error, str):
        return CUDA_ERRORS.get(error) if error is not None else None
    if error.isdecimal():
        return CUDA_ERRORS.get(int(error)) if len(error) <= _DIGITS else None
    return _NVML.get(error.removeprefix("NVML_ERROR_").upper()) or error_in(error)


def error_in(text: str | None) -> CudaError | None:
    """The CUDA error that a line of a program's last words names, if it names one: by name, by number or by words."""
    if not text or "cuda" not in text.lower():
        return None
    for named in _NAMED.finditer(text):
        if (known := _BY_NAME.get(named[1].replace("_", "").lower())) is not None:
            return known
    for number in _NUMBERED.finditer(text):
        if (known := CUDA_ERRORS.get(int(number[1] or number[2]))) is not None:
            return known
    if _UNKNOWN.search(text) is not None:
        return CUDA_ERRORS[999]
    if _NO_DEVICE in text:
        return CUDA_ERRORS[100]
    if "CUDA" not in text and "Cuda failure" not in text:
        return None
    return next((known for known in _TELLING if known.words in text), None)
