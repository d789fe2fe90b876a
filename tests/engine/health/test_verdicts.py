import pytest
import torch

from engine.health.verdicts import cuda_error, exit_of, is_out_of_memory, last_words
from vocab.catalogue.cuda import CUDA_ERRORS, Blame, error_in
from vocab.catalogue.exits import EngineExit


def accelerator_error(code: int) -> torch.AcceleratorError:
    """As PyTorch raises it: built in C++ it carries the number, built from Python it does not."""
    error = torch.AcceleratorError(f"CUDA error: {CUDA_ERRORS[code].words}\nCompile with TORCH_USE_CUDA_DSA")
    error.error_code = code
    return error


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (214, EngineExit.GPU_FAULT),
        (220, EngineExit.GPU_FAULT),
        (226, EngineExit.GPU_FAULT),
        (702, EngineExit.GPU_FAULT),
        (715, EngineExit.GPU_FAULT),
        (719, EngineExit.GPU_FAULT),
        (999, EngineExit.GPU_FAULT),
        (700, EngineExit.CRASHED),
        (716, EngineExit.CRASHED),
        (803, EngineExit.CRASHED),
        (2, EngineExit.OUT_OF_MEMORY),
    ],
)
def test_the_number_of_a_cuda_error_decides_how_the_process_ends(code: int, exit_code: EngineExit) -> None:
    assert exit_of(accelerator_error(code)) is exit_code


def test_every_number_of_the_table_has_an_exit_and_words_that_the_agent_finds_again() -> None:
    for code, row in CUDA_ERRORS.items():
        error = accelerator_error(code)
        assert exit_of(error) in EngineExit
        if row.name != "Unknown":
            assert error_in(last_words(error)) == row


def test_without_a_number_the_words_are_read() -> None:
    plain = RuntimeError("CUDA error: uncorrectable ECC error encountered")
    found = cuda_error(plain)
    assert found is not None
    assert (found.code, found.blame) == (214, Blame.GPU)
    assert exit_of(plain) is EngineExit.GPU_FAULT


def test_a_bug_of_ours_is_a_crash_in_its_own_words() -> None:
    error = KeyError("absent")
    assert exit_of(error) is EngineExit.CRASHED
    assert last_words(error) == "KeyError: 'absent'"


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        MemoryError(),
    ],
)
def test_memory_that_did_not_fit_is_known_on_any_device(error: BaseException) -> None:
    assert is_out_of_memory(error)
    assert not is_out_of_memory(accelerator_error(700))
