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

    async def scrape(self) -> tuple[bytes, str]:
        """``render``, for the server; whoever has much to write does it beside the loop."""
        return self.render()

    def render(self) -> tuple[bytes, str]:
        """The body and content type of a scrape.

        The plain text format, whatever else a Prometheus accepts: under OpenMetrics the library writes ``vllm_…`` for
        ``vllm:…`` (its samples' names are escaped as if they were labels), and boards made for vLLM stay empty.
        """
        text, parts, last = generate_latest(self.registry), [], 0
        heads = ((f"# TYPE {name} gauge\n".encode(), series) for name, series in self.written.items())
        for place, series in sorted((text.index(head) + len(head), series) for head, series in heads if head in text):
            parts += [text[last:place], series]
            last = place
        return b"".join([*parts, text[last:]]), CONTENT_TYPE_PLAIN_0_0_4
