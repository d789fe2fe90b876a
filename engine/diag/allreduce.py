"""A sum over all visible GPUs by NCCL, in one process: is it right, and how fast does it go.

The bus bandwidth is that of NCCL's own tests: bytes / time · 2 (n - 1) / n, what each GPU sends over its links in a
ring.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from engine.diag.bench import MIB, Bench
from vocab.diag import AnyFigures, Reduced, Unmeasured

TEST = "allreduce"
WORDS = 128 * MIB // 4  # large enough that bandwidth and not latency is measured


def measure(bench: Bench) -> AnyFigures:
    """GPU i gives i + 1 in every word; float32 holds the sum exactly."""
    if not bench.is_cuda:
        return Unmeasured(test=TEST, why="NCCL joins GPUs, and this device is a CPU")
    count = torch.cuda.device_count()
    if count < 2:
        return Unmeasured(test=TEST, why="it takes two GPUs")
    from torch.cuda import nccl  # not in builds without CUDA

    reduce_all: Callable[[list[Any]], object] = nccl.all_reduce

    tensors = [torch.full((WORDS,), float(number + 1), device=f"cuda:{number}") for number in range(count)]
    reduce_all(tensors)  # makes the communicators too
    right = count * (count + 1) / 2
    wrong = sum(int((tensor != right).sum()) for tensor in tensors)
    rounds = bench.sizes.rounds
    _wait(count)
    began = time.perf_counter()
    for _ in range(rounds):
        reduce_all(tensors)
    _wait(count)
    seconds = (time.perf_counter() - began) / rounds
    return Reduced(gpus=count, wrong_words=wrong, bus_bytes_per_s=WORDS * 4 / seconds * 2 * (count - 1) / count)


def _wait(count: int) -> None:
    for number in range(count):
        torch.cuda.synchronize(number)
