"""The Xid counters that the agents of a recording would export: one total a GPU, one series for each code.

A counter a code, not the last code: a scrape that comes late misses none of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from agent.export import CRITICAL_XIDS
from vocab.lines import AnyLine, EventLine
from vocab.metrics.agent import GPU

TOTAL, BY_CODE = "corral_gpu_xids_total", "corral_gpu_xid_errors_total"
_ROWS = {row.name: row for row in GPU}


def exposition(lines: Iterable[AnyLine], gpus: Sequence[str]) -> str:
    """What the scrape at the end would read of the Xids in these lines."""
    registry = CollectorRegistry()
    registry.register(_Collector(_counts(lines), gpus))
    return generate_latest(registry).decode()


def _counts(lines: Iterable[AnyLine]) -> dict[str, dict[str, int]]:
    """By GPU and code, of events that nobody injected; of each event its highest count."""
    last = {line.event.id: line.event for line in lines if isinstance(line, EventLine)}
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for event in last.values():
        kind, _, number = event.code.partition(":")
        if kind == "xid" and event.gpu is not None and not event.injected:
            counts[event.gpu][number] += event.count
    return counts


class _Collector:
    """The two families."""

    def __init__(self, counts: dict[str, dict[str, int]], gpus: Sequence[str]) -> None:
        self._counts = counts
        self._gpus = gpus

    def collect(self) -> Iterable[Metric]:
        """Each GPU of the fleet has a total and its critical codes from the start."""
        total = CounterMetricFamily(TOTAL, _ROWS[TOTAL].help, labels=_ROWS[TOTAL].labels)
        by_code = CounterMetricFamily(BY_CODE, _ROWS[BY_CODE].help, labels=_ROWS[BY_CODE].labels)
        for gpu in self._gpus:
            known = self._counts.get(gpu, {})
            total.add_metric((gpu,), sum(known.values()))
            for number, count in (dict.fromkeys(CRITICAL_XIDS, 0) | known).items():
                by_code.add_metric((gpu, number), count)
        return (total, by_code)
