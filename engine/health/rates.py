"""What this device reaches, measured once at start in a fraction of a second: copying, multiplying, launching."""

import time
from collections.abc import Callable
from functools import cache

import torch

from engine.core.architecture import Architecture
from engine.health.step_watch import StepWatch
from engine.roofline import KERNELS_A_LAYER, Roof, shape_of
from vocab.catalogue.specs import spec_of

LAUNCH_S = 2e-6  # of one CUDA kernel, as research and traces have it; on a CPU it is measured
_COPIED = {"cpu": 64 * 2**20, "cuda": 512 * 2**20}  # bytes, beyond any cache
_SIDE = {"cpu": 512, "cuda": 4096}
_ROUNDS = 3


_PEAKS = (torch.bfloat16, torch.float16)  # of other types a board's peak is not in the table
_OWN_KERNELS = 10  # a layer, of our own kernels on CUDA


def watch_of(arch: Architecture, like: torch.Tensor) -> StepWatch:
    """The watch over the steps of a model whose weights are ``like`` this one."""
    width = like.element_size()
    spec = spec_of(torch.cuda.get_device_name(like.device)) if like.is_cuda else None
    flops = spec.bf16_flops_per_s if spec is not None and like.dtype in _PEAKS else None
    peak = Roof(flops, spec.memory_bytes_per_s if spec is not None else None)
    kernels = _OWN_KERNELS if like.is_cuda else KERNELS_A_LAYER
    return StepWatch(shape_of(arch, width, width), peak, measure(like.device, like.dtype), arch.layers * kernels)


@cache
@torch.inference_mode()
def measure(device: torch.device, dtype: torch.dtype) -> Roof:
    """The best of a few rounds of each, once a process. A copy reads and writes, so it counts twice."""
    on_cuda = device.type == "cuda"
    wait: Callable[[], object] = torch.cuda.synchronize if on_cuda else lambda: None
    source = torch.zeros(_COPIED[device.type], dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)  # touched: the first write to fresh pages is not what is measured
    copied = _best(lambda: target.copy_(source), wait)
    side = _SIDE[device.type]
    left = torch.ones(side, side, dtype=dtype, device=device)
    product = torch.empty_like(left)
    multiplied = _best(lambda: torch.mm(left, left, out=product), wait)
    return Roof(2 * side**3 / multiplied, 2 * source.numel() / copied, LAUNCH_S if on_cuda else _launch_s())


def _best(work: Callable[[], object], wait: Callable[[], object]) -> float:
    """Seconds of the fastest round, after one that does not count."""
    best = float("inf")
    for number in range(_ROUNDS + 1):
        began = time.perf_counter()
        work()
        wait()
        if number:
            best = min(best, time.perf_counter() - began)
    return max(best, 1e-9)


def _launch_s() -> float:
    one = torch.zeros(1)
    times = 300

    def many() -> None:
        for _ in range(times):
            one.add_(1)

    return _best(many, lambda: None) / times
