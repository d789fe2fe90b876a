"""What an error that ended a step means: whom it blames, with which exit code the process ends, what it says last.

``torch.AcceleratorError`` carries CUDA's own number as ``error_code``; the table of numbers is vocab.catalogue.cuda.
After any of them but a failed allocation the process cannot compute any more, so nothing is ever tried again in it:
it ends, says why, and its agent decides.
"""

from vocab.catalogue.cuda import Blame, CudaError, error_in, known_error
from vocab.catalogue.exits import EngineExit

_EXITS = {
    Blame.GPU: EngineExit.GPU_FAULT,
    Blame.FABRIC: EngineExit.GPU_FAULT,
    Blame.LOST: EngineExit.GPU_FAULT,
    Blame.HANG: EngineExit.GPU_FAULT,
    Blame.AMBIGUOUS: EngineExit.GPU_FAULT,
    Blame.SOFTWARE: EngineExit.CRASHED,
    Blame.NODE: EngineExit.CRASHED,
    Blame.MEMORY: EngineExit.OUT_OF_MEMORY,
}
_MEANS = {
    Blame.GPU: "the GPU reports it itself",
    Blame.FABRIC: "a link, or the GPU at its other end",
    Blame.LOST: "the GPU does not answer, or is kept from this process",
    Blame.HANG: "a kernel did not come back",
    Blame.AMBIGUOUS: "once is chance, twice on one GPU a suspicion",
    Blame.SOFTWARE: "a bug first; the hardware only if it moves with the GPU",
    Blame.NODE: "the driver, the fabric manager or MPS of this node",
    Blame.MEMORY: "no smaller step is left to try",
}
_HOST_MEMORY = ("DefaultCPUAllocator", "can't allocate memory")


def cuda_error(error: BaseException) -> CudaError | None:
    """The row of CUDA's table that an exception stands for, by its number or else by its words."""
    return known_error(getattr(error, "error_code", None)) or error_in(str(error))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on the device or on the host: the process can go on with less."""
    if isinstance(error, MemoryError):
        return True
    found = cuda_error(error)
    return found.blame is Blame.MEMORY if found is not None else any(words in str(error) for words in _HOST_MEMORY)


def exit_of(error: BaseException) -> EngineExit:
    """The exit code of a process whose step loop this error ended."""
    if is_out_of_memory(error):
        return EngineExit.OUT_OF_MEMORY
    found = cuda_error(error)
    return EngineExit.CRASHED if found is None else _EXITS[found.blame]


def last_words(error: BaseException) -> str:
    """One line on why the process ends, in words by which its agent knows a CUDA error."""
    found = cuda_error(error)
    if found is None:
        first = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {first}" if first else type(error).__name__
    return f"CUDA error {found.code} ({found.name}): {found.words}; {_MEANS[found.blame]}"
