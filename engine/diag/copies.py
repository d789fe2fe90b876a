"""How fast bytes go up to the device, down from it, and within it."""

import torch

from engine.diag.bench import Bench
from vocab.diag import AnyFigures, Copied

TEST = "copies"


def measure(bench: Bench) -> AnyFigures:
    """Copy between pinned host memory and the device, and within the device."""
    size, rounds = bench.sizes.copied_bytes, bench.sizes.rounds
    host = torch.empty(size, dtype=torch.uint8, pin_memory=bench.is_cuda)
    one = torch.empty(size, dtype=torch.uint8, device=bench.device)
    other = torch.empty_like(one)
    up = bench.seconds(lambda: one.copy_(host, non_blocking=True), rounds)
    down = bench.seconds(lambda: host.copy_(one, non_blocking=True), rounds)
    within = bench.seconds(lambda: other.copy_(one), rounds)
    return Copied(
        device=bench.device,
        up_bytes_per_s=size / up,
        down_bytes_per_s=size / down,
        within_bytes_per_s=2 * size / within,  # each byte is read and written
    )
