"""What a replica does to the virtual GPUs that it runs on, judged from its beats. Pure.

The replica computes elsewhere (on the CPU); here its steps become the load that the same serving would be
on the real board: decoding is bound by memory, so utilization is near 100 % while a fraction of the SMs
works. Figures marked [H] are ours.
"""

import msgspec

from agent.virtual.boards import Board
from agent.virtual.physics import Load
from vocab.beat import Beat

CONTEXT_BYTES = 520 * 2**20  # what a CUDA context takes before any weight is loaded [H]
MEMORY_SHARE = 0.9  # serving engines reserve weights and KV cache up front: 90 % by their usual default
STEPPING = 0.98  # share of time in which a kernel runs while steps follow each other [H]
DRAM_DECODE = 0.62  # of the peak at one sequence [H]; the guide calls 0.8 what real code reaches
SM_DECODE = 0.24  # SMs active at one sequence [H]
OCCUPANCY = 0.4  # warps on an active SM, of the most [H]
LINK_SHARE = 0.06  # of all links' peak, for the sums of a tensor-parallel layer [H]
HOST_KIB_PER_TOKEN = 64  # tokens in, logits out [H]


class Activity(msgspec.Struct, frozen=True):
    """A replica's work on each of its GPUs in one interval."""

    load: Load
    used_bytes: int


def activity(before: Beat | None, after: Beat | None, members: int, board: Board, dt: float) -> Activity:
    """What happened between two beats ``dt`` seconds apart; None where there was none to read.

    A replica that is loading holds a context; a ready one its whole share of memory. Only steps that were
    made count as work: one that has requests and makes none is idle hardware.
    """
    if after is None or not after.ready:
        return Activity(Load(contexts=1), CONTEXT_BYTES)
    used = int(MEMORY_SHARE * (board.memory_total_bytes - board.memory_reserved_bytes))
    same = before is not None and before.pid == after.pid
    steps = after.step - before.step if before and same else 0
    if steps <= 0 or dt <= 0:
        return Activity(Load(contexts=1), used)
    tokens = max(0, after.tokens - before.tokens) if before else 0
    return Activity(_decoding(tokens / steps, tokens / dt, members, board), used)


def _decoding(batch: float, tokens_per_s: float, members: int, board: Board) -> Load:
    sm_active = min(0.85, SM_DECODE + 0.02 * batch)
    links_kib = board.links * board.link_speed_mb_per_s * 1000 * LINK_SHARE / 1.024 if members > 1 else 0
    return Load(
        utilization=STEPPING,
        sm_active=sm_active,
        sm_occupancy=sm_active * OCCUPANCY,
        tensor=min(0.6, 0.01 * (1 + batch)),
        dram=min(0.8, DRAM_DECODE + 0.01 * batch),
        contexts=1,
        host_kib_per_s=int(tokens_per_s * HOST_KIB_PER_TOKEN),
        links_kib_per_s=int(links_kib),
    )


def together(loads: list[Load]) -> Load:
    """Several replicas on one GPU: they share it, so ratios add up to at most 1."""
    if len(loads) == 1:
        return loads[0]
    return Load(
        utilization=min(1.0, sum(load.utilization for load in loads)),
        sm_active=min(1.0, sum(load.sm_active for load in loads)),
        sm_occupancy=min(1.0, sum(load.sm_occupancy for load in loads)),
        tensor=min(1.0, sum(load.tensor for load in loads)),
        dram=min(0.9, sum(load.dram for load in loads)),
        contexts=sum(load.contexts for load in loads),
        host_kib_per_s=sum(load.host_kib_per_s for load in loads),
        links_kib_per_s=sum(load.links_kib_per_s for load in loads),
    )
