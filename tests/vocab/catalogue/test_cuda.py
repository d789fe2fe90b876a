"""Which CUDA error programs mean: by number, by either interface's name, in the words of PyTorch, NCCL and Triton."""

import pytest

from vocab.catalogue.cuda import CUDA_ERRORS, Blame, error_in, known_error


@pytest.mark.parametrize(
    ("reported", "code"),
    [
        (214, 214),
        ("214", 214),
        ("CUDA_ERROR_ECC_UNCORRECTABLE", 214),
        ("cudaErrorECCUncorrectable", 214),
        ("CUDA_ERROR_LAUNCH_FAILED", 719),
        ("cudaErrorLaunchFailure", 719),
        ("CUDA_ERROR_OUT_OF_MEMORY", 2),
        ("cudaErrorMemoryAllocation", 2),
        ("CUDA_ERROR_DEVICE_UNAVAILABLE", 46),
        ("CUDA_ERROR_UNKNOWN", 999),
        ("CUDA error 700", 700),
    ],
)
def test_an_error_is_reported_by_number_or_by_either_name(reported, code):
    assert known_error(reported) is CUDA_ERRORS[code]


@pytest.mark.parametrize("reported", [None, 0, "", "UNKNOWN", "LIB_RM_VERSION_MISMATCH", "CUDA_ERROR_OF_TOMORROW", 12])
def test_what_is_in_no_table_is_no_error_of_cuda(reported):
    assert known_error(reported) is None


@pytest.mark.parametrize("code", CUDA_ERRORS)
def test_every_row_is_found_by_its_name_number_and_words(code):
    row = CUDA_ERRORS[code]
    for line in (f"failed: cudaError{row.name}", f"CUDA error ({code})", f"CUDA error: {row.words}"):
        assert error_in(line) is row


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[rank3] x.cc:7 NCCL WARN Cuda failure 719 'unspecified launch failure'", 719),
        ("NCCL WARN Cuda failure 'an illegal memory access was encountered'", 700),
        ("RuntimeError: CUDA driver error: unknown error", 999),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized", 802),
        ("RuntimeError: No CUDA GPUs are available", 100),
        ("check failed, code=214(cudaErrorECCUncorrectable) at copy.cu:9", 214),
        ("CUDA error code=700 in copy.cu:9", 700),
        ("torch.OutOfMemoryError: CUDA out of memory.", 2),
    ],
)
def test_programs_print_it_in_ways_of_their_own(line, code):
    assert error_in(line) is CUDA_ERRORS[code]


@pytest.mark.parametrize(
    "line",
    [
        "CUDA graphs captured: 100/100",
        "NCCL error 'unhandled cuda error (run with NCCL_DEBUG=INFO for details)'",
        "static cudaError_t last()",
        "torch.cuda: the host is out of memory",
        "CUDA error 12000 of another table",
        "HTTP Error 404: no such cuda page",
        "an unknown error",
    ],
)
def test_a_line_that_names_none_has_none(line):
    assert error_in(line) is None


def test_a_contained_error_is_of_the_link_or_of_its_other_end():
    assert CUDA_ERRORS[226].blame is Blame.FABRIC


@pytest.mark.parametrize("said", ["²", "7" * 5_000, "", "-719"])
def test_what_an_engine_reports_may_be_no_number_of_cuda_at_all(said):
    assert known_error(said) is None
