"""An engine's /metrics as the figures that a beat has. Only the lines that the adapter names are looked at."""

import math
import re
from collections import defaultdict
from functools import lru_cache

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from agent.adapters.adapter import Meters


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says of itself now; None where it says nothing. Counters are cumulative."""

    step: int | None = None
    tokens: int | None = None
    running: int | None = None
    waiting: int | None = None
    kv_ratio: float | None = None
    ok: int | None = None
    failed: int | None = None


@lru_cache(maxsize=16)
def _lines(meters: Meters) -> re.Pattern[str]:
    """The lines of these metrics, whole; one pass over a text of which they are a fiftieth."""
    wanted = "|".join(re.escape(name) for name in sorted(meters.names))
    return re.compile(rf"^(?:{wanted})(?=[{{ ]).*$", re.MULTILINE)


def figures(text: str, meters: Meters) -> Figures:
    """The figures in the text of /metrics; several series of a name (data-parallel engines, ranks) are added up.

    Of the share of KV cache in use the fullest engine counts. Text that cannot be read says nothing.
    """
    if not meters.names:
        return Figures()
    lines = _lines(meters).findall(text)
    found: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                if math.isfinite(sample.value):
                    found[sample.name].append((sample.labels, sample.value))
    except ValueError:
        return Figures()

    def total(wanted: tuple[str, ...], of: frozenset[str] | None = None) -> int | None:
        series = [pair for name in wanted for pair in found.get(name, ())]
        if not series:
            return None
        return round(sum(value for labels, value in series if of is None or labels.get(meters.ended_by) in of))

    fullest = [value for name in meters.kv_ratio for _, value in found.get(name, ())]
    return Figures(
        step=total(meters.steps),
        tokens=total(meters.tokens) if any(name in found for name in meters.tokens[:1]) else None,
        running=total(meters.running),
        waiting=total(meters.waiting),
        kv_ratio=max(fullest, default=None),
        ok=total(meters.ended, meters.ok),
        failed=total(meters.ended, meters.failed),
    )
