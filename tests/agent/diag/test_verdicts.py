"""Figures in, verdict out: good, broken and absent of every test."""

import pytest

from agent.diag.ruling import rule
from agent.diag.verdict import Subject
from tests.agent.diag.made import FIRST, H100
from vocab.diag import Begun, Burned, Computed, Copied, Multiplied, Opened, Patterned, Reduced, Unmeasured
from vocab.readings import Readings

READ = Readings(memory_total_bytes=80 * 2**30, pcie_generation_max=5, pcie_width=16)
H = Subject(FIRST, H100, READ)
STRANGE = Subject(FIRST, "NVIDIA Marvel 9000", READ)


def copied(up=50e9, down=50e9, within=2.9e12, device="cuda"):
    return Copied(device=device, up_bytes_per_s=up, down_bytes_per_s=down, within_bytes_per_s=within)


def rated(flops=700e12, device="cuda"):
    return Computed(device=device, kind="bf16", flops_per_s=flops)


def patterned(size=78 * 2**30, wrong=0, device="cuda"):
    return Patterned(device=device, tested_bytes=size, patterns=6, wrong_words=wrong)


def burned(wrong=0, last=6.5e14, device="cuda"):
    return Burned(
        device=device, seconds=180.0, products=9000, wrong=wrong, first_flops_per_s=7e14, last_flops_per_s=last
    )


def reduced(wrong=0, bandwidth=330e9):
    return Reduced(gpus=8, wrong_words=wrong, bus_bytes_per_s=bandwidth)


@pytest.mark.parametrize(
    ("figures", "subject", "check", "result", "code"),
    [
        (Opened(device="cuda", board=H100), H, "diag_open", "pass", None),
        (Multiplied(products=12), H, "canary", "pass", None),
        (Multiplied(products=12, wrong=("tf32 4096x2048x4096",)), H, "canary", "problem", "silent_corruption"),
        (Multiplied(products=0), H, "canary", "unknown", None),
        (patterned(), H, "diag_memory", "pass", None),
        (patterned(wrong=3), H, "canary", "problem", "silent_corruption"),
        (patterned(size=2**30), H, "diag_memory", "unknown", None),
        (patterned(size=2**25, device="cpu"), H, "diag_memory", "pass", None),
        (copied(), H, "diag_copies", "pass", None),
        (copied(up=12e9), H, "diag_copies", "problem", "slow_gpu"),
        (copied(within=1e12), H, "diag_copies", "problem", "slow_gpu"),
        (copied(), Subject(FIRST), "diag_copies", "unknown", None),
        (copied(), STRANGE, "diag_copies", "pass", None),  # its link is known, if not its memory
        (copied(device="cpu"), H, "diag_copies", "unknown", None),
        (rated(), H, "diag_rate", "pass", None),
        (rated(flops=300e12), H, "diag_rate", "problem", "slow_gpu"),
        (rated(flops=300e12), STRANGE, "diag_rate", "unknown", None),
        (rated(device="cpu"), H, "diag_rate", "unknown", None),
        (reduced(), H, "diag_allreduce", "pass", None),
        (reduced(bandwidth=20e9), H, "diag_allreduce", "problem", "slow_gpu"),
        (reduced(wrong=1), H, "diag_allreduce", "problem", None),
        (reduced(), Subject(FIRST, "NVIDIA H100 PCIe"), "diag_allreduce", "unknown", None),
        (burned(), H, "diag_burn", "pass", None),
        (burned(wrong=1), H, "canary", "problem", "silent_corruption"),
        (burned(last=4e14), H, "diag_burn", "problem", "slow_gpu"),
        (burned(last=1e9, device="cpu"), H, "diag_burn", "pass", None),
    ],
)
def test_a_figure_has_its_verdict(figures, subject, check, result, code):
    found = rule(figures, subject, "n1", 5.0)
    assert (found.check, found.result, found.code, found.node, found.at) == (check, result, code, "n1", 5.0)


def test_a_gpu_whose_power_is_limited_by_order_is_not_called_slow():
    limited = Subject(FIRST, H100, Readings(power_limit_w=350.0, power_limit_default_w=700.0))
    found = rule(rated(flops=300e12), limited, "n1", 5.0)
    assert found.result == "unknown"
    assert "350 W of 700 W" in found.text


@pytest.mark.parametrize(
    "error",
    [
        None,
        "CUDA error: out of memory",
        "CUDA error: no CUDA-capable device is detected",
        "CUDA error: all CUDA-capable devices are busy or unavailable",
        "CUDA error: system not yet initialized",
        "CUDA error: an illegal memory access was encountered",
    ],
)
@pytest.mark.parametrize("test", ["open", "exact", "memory"])
def test_a_missing_tool_or_a_busy_device_says_nothing_of_the_gpu(test, error):
    assert rule(Unmeasured(test=test, why="no", error=error), H, "n1", 5.0).result == "unknown"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("CUDA error: uncorrectable ECC error encountered", "ecc_uncorrectable"),
        ("GPU is lost", "gpu_lost"),
    ],
)
@pytest.mark.parametrize("test", ["open", "exact", "memory", "burn"])
def test_the_hardwares_own_words_are_a_problem_and_never_a_wrong_result(test, error, code):
    found = rule(Unmeasured(test=test, why=error, error=error), H, "n1", 5.0)
    assert (found.check, found.result, found.code) == ("diag_open", "problem", code)


def test_a_sum_over_several_gpus_is_of_no_gpu_in_particular():
    assert rule(reduced(wrong=1), H, "n1", 5.0).gpu is None


def test_that_a_test_has_begun_is_no_result():
    assert rule(Begun(test="open"), H, "n1", 5.0) is None
