"""Prometheus collectors made from the rows of vocab.metrics, so that no process exports a metric without a row."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from vocab.metrics import Kind, Metric

Collector = Counter | Gauge | Histogram


class Exposition:
    """One process's registry. ``gauge``, ``counter`` and ``histogram`` give collectors by full metric name."""

    def __init__(self, rows: Iterable[Metric]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library lacks this annotation
        self.registry = CollectorRegistry()
        self.written: dict[str, bytes] = {}  # gauges of so many series that they are kept as text: name -> lines
        self._collectors: dict[str, Collector] = {row.name: self._build(row) for row in rows}

    def _build(self, row: Metric) -> Collector:
        if row.kind is Kind.COUNTER:
            return Counter(row.name, row.help, row.labels, registry=self.registry)
        if row.kind is Kind.HISTOGRAM:
            return Histogram(row.name, row.help, row.labels, buckets=row.buckets, registry=self.registry)
        return Gauge(row.name, row.help, row.labels, registry=self.registry)  # an info metric is a gauge of 1

    def gauge(self, name: str) -> Gauge:
        """The gauge (or info metric) of this row."""
        found = self._collectors[name]
        assert isinstance(found, Gauge), name
        return found

    def counter(self, name: str) -> Counter:
        """The counter of this row."""
        found = self._collectors[name]
        assert isinstance(found, Counter), name
        return found

    def histogram(self, name: str) -> Histogram:
        """The histogram of this row."""
        found = self._collectors[name]
        assert isinstance(found, Histogram), name
        return found

    def render(self) -> tuple[bytes, str]:
        """The body and content type of a scrape.

        The plain text format, whatever else a Prometheus accepts: under OpenMetrics the library writes ``vllm_…`` for
        ``vllm:…`` (its samples' names are escaped as if they were labels), and boards made for vLLM stay empty.
        """
        text = generate_latest(self.registry)
        for name, series in self.written.items():
            head = f"# TYPE {name} gauge\n".encode()
            text = text.replace(head, head + series, 1)
        return text, CONTENT_TYPE_PLAIN_0_0_4
