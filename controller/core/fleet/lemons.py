"""Lemons: cards that fail again and again while their peers do not. A reason to look at a card, never a hold.

Signals of 28 days, after Meta's study of its research clusters (arXiv 2410.21680): how often a card was taken out, how
many different faults it had, how often it was repaired. Days with a fault are counted, not events: one burst is one
day. Each signal is compared with the mean of the other cards of the same board, so what befalls all of them (a driver,
a new check) makes no lemon. Faults that programs cause are none of the card's.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

WINDOW_S = 28 * 86_400.0
At = Annotated[float, msgspec.Meta(gt=0)]


class Thresholds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From where on a signal counts, and a card is a lemon.

    The window is the study's. It set its thresholds by hand, for its own fleet, so these are our judgement;
    that lemons have 20 to 50 times as much as their peers (1 to 2 % of the nodes) is from fleets that told of theirs.
    """

    fault_days: At = 3.0  # below it a signal says nothing
    fault_codes: At = 2.0
    holds: At = 3.0
    repairs: At = 2.0
    usual: At = 0.1  # taken for the mean of peers where it is less or nobody knows: some failures are chance
    times: At = 10.0  # as much as peers have, from which on a signal counts
    score: At = 2.5  # the sum of the decimal logarithms of those ratios, from which on a card is a lemon
    signals: Annotated[int, msgspec.Meta(ge=1, le=4)] = 2  # that must count: one alone has many causes


SIGNALS = ("fault_days", "fault_codes", "holds", "repairs")
DEFAULT = Thresholds()


class Signal(msgspec.Struct, frozen=True):
    """One reason: ``value`` in 28 days where ``peers`` other cards of the board have ``mean``; what it adds."""

    signal: str
    value: float
    mean: float
    peers: int
    points: float
    text: str


class Lemon(msgspec.Struct, frozen=True, kw_only=True):
    """A card with signals that count; ``lemon``: enough of them."""

    gpu: str
    board: str | None
    score: float
    lemon: bool
    signals: tuple[Signal, ...]


class Tally(msgspec.Struct, frozen=True):
    """A daily rollup of a GPU: ``measure`` fault, hold or repair, of ``name``, on the day that begins at ``start``."""

    gpu: str
    start: int
    measure: str
    name: str
    value: float


def signals(tallies: Iterable[Tally], faults: frozenset[str]) -> dict[str, Counter[str]]:
    """The signals of each GPU that has any. ``faults``: the codes that are the card's own."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    days: dict[str, set[int]] = defaultdict(set)
    codes: dict[str, set[str]] = defaultdict(set)
    for each in tallies:
        if each.measure == "fault" and each.name in faults:
            days[each.gpu].add(each.start)
            codes[each.gpu].add(each.name)
        elif each.measure in {"hold", "repair"}:
            found[each.gpu][f"{each.measure}s"] += int(each.value)
    for gpu, some in days.items():
        found[gpu]["fault_days"], found[gpu]["fault_codes"] = len(some), len(codes[gpu])
    return found


def lemons(
    found: Mapping[str, Mapping[str, float]],
    boards: Mapping[str, str | None],
    sizes: Mapping[str | None, int],
    thresholds: Thresholds = DEFAULT,
) -> list[Lemon]:
    """The cards with a signal that counts, the worst first. ``sizes``: how many cards there are of each board."""
    sums: dict[tuple[str | None, str], float] = defaultdict(float)
    for gpu, values in found.items():
        for signal, value in values.items():
            sums[boards.get(gpu), signal] += value
    made = []
    for gpu, values in found.items():
        board = boards.get(gpu)
        peers = max(0, sizes.get(board, 1) - 1)
        told = [
            _signal(signal, values.get(signal, 0.0), sums[board, signal], peers, board, thresholds)
            for signal in SIGNALS
            if values.get(signal, 0.0) >= getattr(thresholds, signal)
        ]
        counts = tuple(signal for signal in told if signal.points > 0)
        if counts:
            score = round(sum(signal.points for signal in counts), 2)
            made.append(
                Lemon(
                    gpu=gpu,
                    board=board,
                    score=score,
                    lemon=score >= thresholds.score and len(counts) >= thresholds.signals,
                    signals=counts,
                )
            )
    return sorted(made, key=lambda each: (-each.score, each.gpu))


def _signal(signal: str, value: float, total: float, peers: int, board: str | None, thresholds: Thresholds) -> Signal:
    mean = (total - value) / peers if peers else 0.0
    ratio = value / max(mean, thresholds.usual)
    points = round(math.log10(ratio), 2) if ratio >= thresholds.times else 0.0
    others = f"{peers} others of {board or 'an unknown board'} have {mean:.2f} on average" if peers else "no peers"
    return Signal(signal, value, round(mean, 4), peers, points, f"{signal} {value:g} in 28 days; {others}")
