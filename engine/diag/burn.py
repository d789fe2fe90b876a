"""Full power for a while: products without a pause, an exact one between them now and then.

Who started it watches power and temperature and ends it at the slowdown temperature.
"""

import time

import torch

from engine.diag.bench import Bench
from engine.diag.exact import KNOWN, checksum, left, product, right
from vocab.diag import AnyFigures, Burned

TEST = "burn"
ROUND_S = 5.0  # between two exact products


def measure(bench: Bench, seconds: float) -> AnyFigures:
    """Multiply for ``seconds``."""
    side = bench.sizes.side
    dtype = torch.bfloat16 if bench.is_cuda else torch.float32
    a = torch.randn(side, side, device=bench.device).to(dtype)  # random bits take more power than ones
    b, out = a.clone(), torch.empty_like(a)
    shape = bench.sizes.shapes[0]
    exact = left(shape[0], shape[1]), right(shape[1], shape[2])
    began = time.monotonic()
    rates: list[float] = []
    wrong = 0
    while not rates or time.monotonic() < began + seconds:
        until = time.monotonic() + min(ROUND_S, seconds / 10)
        while True:
            took = bench.seconds(lambda: torch.mm(a, b, out=out), bench.sizes.rounds)
            rates.append(2 * side**3 / took)
            if time.monotonic() >= until:
                break
        wrong += checksum(product(bench, *exact, "float32")) != KNOWN[shape]
    tenth = max(1, len(rates) // 10)
    return Burned(
        device=bench.device,
        seconds=time.monotonic() - began,
        products=len(rates) * bench.sizes.rounds,
        wrong=wrong,
        first_flops_per_s=sum(rates[:tenth]) / tenth,
        last_flops_per_s=sum(rates[-tenth:]) / tenth,
    )
