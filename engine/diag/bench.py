"""The device under test: where tensors live, how work on it is awaited and timed, and how big the work is."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch

MIB = 2**20
GIB = 2**30


class Sizes(msgspec.Struct, frozen=True):
    """How much work a test does on this kind of device."""

    shapes: tuple[tuple[int, int, int], ...]  # of exact products
    copied_bytes: int
    side: int  # of the square product whose rate is measured
    most_tested_bytes: int | None  # of memory; None: all that is free but for ``spared_bytes``
    spared_bytes: int
    rounds: int


# 4096 x 4096 results are 1024 tiles of 128 x 128, several for each of the 132 to 148 SMs of today's boards; the sides
# of the others are no powers of two, so that tiles fall on other SMs and lie differently in memory.
CUDA = Sizes(
    shapes=((4096, 2048, 4096), (4224, 1024, 3968), (2688, 4096, 2816)),
    copied_bytes=256 * MIB,
    side=8192,
    most_tested_bytes=None,
    spared_bytes=GIB,  # for the context, libraries and what the driver takes
    rounds=20,
)
CPU = Sizes(
    shapes=((256, 256, 256), (192, 320, 128), (384, 64, 448)),
    copied_bytes=8 * MIB,
    side=256,
    most_tested_bytes=32 * MIB,
    spared_bytes=0,
    rounds=3,
)


class Bench:
    """One device. ``is_corrupt`` is a virtual GPU's fault: one value of each result is changed."""

    def __init__(self, device: str, *, is_corrupt: bool = False) -> None:
        self.device = device
        self.sizes = CUDA if device == "cuda" else CPU
        self.is_corrupt = is_corrupt

    @property
    def is_cuda(self) -> bool:
        """Whether this is a real GPU."""
        return self.device == "cuda"

    def wait(self) -> None:
        """Until all work given to it is done."""
        if self.is_cuda:
            torch.cuda.synchronize()

    def free_bytes(self) -> int | None:
        """Memory that is free; None where that is no question."""
        return int(torch.cuda.mem_get_info()[0]) if self.is_cuda else None

    def result(self, values: Any) -> Any:
        """What the device gives back as the result of a computation."""
        if self.is_corrupt:
            values.view(-1)[values.numel() // 2] += 1
        return values

    def seconds(self, work: Callable[[], object], times: int) -> float:
        """Of one round of ``work`` in the mean, after a first one that does not count."""
        work()
        self.wait()
        began = time.perf_counter()
        for _ in range(times):
            work()
        self.wait()
        return max((time.perf_counter() - began) / times, 1e-9)
