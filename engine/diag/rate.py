"""How many operations a second large products reach."""

import torch

from engine.diag.bench import Bench
from vocab.diag import AnyFigures, Computed

TEST = "rate"


def measure(bench: Bench) -> AnyFigures:
    """Multiply square matrices of bf16 (a CPU: of float32)."""
    side = bench.sizes.side
    dtype = torch.bfloat16 if bench.is_cuda else torch.float32
    a = torch.ones(side, side, dtype=dtype, device=bench.device)
    b = torch.ones(side, side, dtype=dtype, device=bench.device)
    out = torch.empty_like(a)
    seconds = bench.seconds(lambda: torch.mm(a, b, out=out), bench.sizes.rounds)
    return Computed(device=bench.device, kind="bf16" if bench.is_cuda else "float32", flops_per_s=2 * side**3 / seconds)
