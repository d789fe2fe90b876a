"""The other measures, on the CPU, and the program around them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.diag import allreduce, burn, copies, memory, opening, rate
from engine.diag.__main__ import run
from engine.diag.bench import CPU, Bench
from vocab.diag import Begun, Unmeasured


def test_a_cpu_opens():
    assert opening.measure(Bench("cpu")).device == "cpu"


def test_memory_is_written_and_read_back():
    found = memory.measure(Bench("cpu"))
    assert (found.tested_bytes, found.patterns, found.wrong_words) == (CPU.most_tested_bytes, 6, 0)


def test_memory_that_changes_what_it_holds_is_seen_by_every_pattern():
    assert memory.measure(Bench("cpu", is_corrupt=True)).wrong_words == 6


def test_copies_and_products_have_a_rate():
    copied, computed = copies.measure(Bench("cpu")), rate.measure(Bench("cpu"))
    assert min(copied.up_bytes_per_s, copied.down_bytes_per_s, copied.within_bytes_per_s, computed.flops_per_s) > 0


def test_a_sum_over_gpus_needs_gpus():
    assert isinstance(allreduce.measure(Bench("cpu")), Unmeasured)


@pytest.mark.parametrize(("is_corrupt", "wrong"), [(False, 0), (True, 1)])
def test_a_burn_makes_exact_products_between(is_corrupt, wrong):
    found = burn.measure(Bench("cpu", is_corrupt=is_corrupt), 0.0)
    assert (found.wrong, found.products > 0) == (wrong, True)


def test_each_test_begins_before_its_figure_comes():
    found = list(run(["open", "memory"], "cpu", [], 0.0))
    assert [figures.test for figures in found if isinstance(figures, Begun)] == ["open", "open", "memory"]
    assert [type(figures).__name__ for figures in found[1:]] == ["Begun", "Opened", "Begun", "Patterned"]


def test_a_lost_virtual_gpu_does_not_open():
    found = [figures for figures in run(["open", "exact"], "cpu", ["lost"], 0.0) if not isinstance(figures, Begun)]
    assert [(figures.test, figures.error) for figures in found] == [("open", "GPU is lost"), ("exact", "GPU is lost")]


def test_a_pytorch_without_cuda_is_a_missing_tool_and_no_error_of_a_gpu():
    found = list(run(["open"], "cuda", [], 0.0))[-1]
    import torch

    if torch.version.cuda is None:
        assert found.error is None
        assert "CUDA build" in found.why


def test_the_program_ends_with_the_one_who_started_it():
    root = Path(__file__).parents[3]
    started = subprocess.Popen(
        [sys.executable, "-m", "engine.diag", "--device", "cpu", "--fault", "hang", "open"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root,
    )  # fmt: skip
    try:
        assert started.stdout.readline()
        started.stdin.close()
        assert started.wait(60) == 1
    finally:
        started.kill()
        started.wait()
        started.stdout.close()


def test_without_pytorch_every_test_is_unmeasured(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "engine.diag", "--device", "cpu", "open", "exact"],
        capture_output=True, text=True, timeout=60, cwd=root, stdin=subprocess.DEVNULL,
        env={"PYTHONPATH": f"{tmp_path}:{root}", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["test"] for line in told if line["figures"] == "unmeasured"] == ["open", "exact"]
    assert "pip install" in told[-1]["why"]
