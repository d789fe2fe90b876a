"""The agent's /metrics: rendered from memory, so that a scrape never waits for a driver.

A reading that is missing or older than a few periods has no series. Xid counters of every critical code
stand at 0 from the start, so that the first increase is seen as one.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agent.latest import Latest
from vocab.catalogue.codes import XIDS
from vocab.events import Event, Severity
from vocab.messages import NodeFacts
from vocab.metrics import Kind
from vocab.metrics.agent import GPU, READINGS, SELF
from vocab.observations import GpuIdentity, GpuSample
from wire.exposition import Exposition

CRITICAL_XIDS = tuple(str(number) for number, row in XIDS.items() if row.severity is Severity.CRITICAL)
PHASES = ("starting", "ready", "draining", "stopped")
MOST_COUNTED = 4096  # events whose count is remembered, so that a revision adds only its growth
_ROWS = {row.name: row for row in GPU}


class Export:
    """The registry of this process, and the counters that are not read from elsewhere."""

    def __init__(self, latest: Latest, now: Callable[[], float], counted: dict[str, int] | None = None) -> None:
        self.exposition = Exposition(SELF)
        self.fenced: frozenset[str] = frozenset()
        self.held: Mapping[str, int] = {}
        self.xids: dict[str, dict[str, int]] = {}
        self._dropped = 0
        self._counted: OrderedDict[str, int] = OrderedDict(counted or {})
        self.exposition.registry.register(GpuCollector(self, latest, now))

    @contextmanager
    def taking(self, obs: str) -> Iterator[None]:
        """Time one observation."""
        began = perf_counter()
        try:
            yield
        finally:
            self.exposition.histogram("corral_agent_take_seconds").observe(perf_counter() - began)
            self.count("corral_agent_observations_total", obs=obs)

    def count(self, name: str, by: float = 1.0, **labels: str) -> None:
        """Add to one of the agent's own counters."""
        counter = self.exposition.counter(name)
        (counter.labels(**labels) if labels else counter).inc(by)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set one of the agent's own gauges."""
        gauge = self.exposition.gauge(name)
        (gauge.labels(**labels) if labels else gauge).set(value)

    def dropped(self, total: int) -> None:
        """The spool has dropped this many items in its life."""
        counter = self.exposition.counter("corral_agent_spool_dropped_total")
        counter.inc(max(0, total - self._dropped))
        self._dropped = max(self._dropped, total)

    def phases(self, phases: Iterable[str]) -> None:
        """The phases of all replicas."""
        listed = list(phases)
        for phase in PHASES:
            self.set("corral_agent_replicas", listed.count(phase), phase=phase)

    def node(self, facts: NodeFacts) -> None:
        """What the node is; one series, whatever it was before."""
        self.exposition.gauge("corral_agent_node_info").clear()
        virtual = "true" if facts.virtual else "false"
        labels = {"node": facts.node, "virtual": virtual, "driver": facts.driver or "", "level": facts.level.value}
        self.set("corral_agent_node_info", 1, **labels)

    def batch(self, result: str) -> None:
        """A batch was sent."""
        self.count("corral_agent_uplink_batches_total", result=result)

    def failed(self, part: str) -> None:
        """Something could not be handled; the log has the details."""
        self.count("corral_agent_failures_total", part=part)

    def judged(self, event: Event) -> None:
        """Count an event or the growth that a revision brings."""
        before = self._counted.get(event.id, 0)
        grown = max(0, event.count - before)
        self._counted[event.id] = max(before, event.count)
        self._counted.move_to_end(event.id)
        if len(self._counted) > MOST_COUNTED:
            self._counted.popitem(last=False)
        if event.injected:
            self.count("corral_agent_injected_events_total", grown)
            return
        if before == 0:
            self.count("corral_agent_events_total", severity=event.severity.value)
        if event.code == "kernel_records_lost":
            self.count("corral_agent_kernel_records_lost_total", event.fields.get("lost") or 1)
        kind, _, number = event.code.partition(":")
        if kind == "xid" and event.gpu is not None:
            of_gpu = self.xids.setdefault(event.gpu, {})
            of_gpu[number] = of_gpu.get(number, 0) + grown


class GpuCollector(Collector):
    """Turns the latest samples into series, one family a row of the catalogue."""

    def __init__(self, export: Export, latest: Latest, now: Callable[[], float]) -> None:
        self._export = export
        self._latest = latest
        self._now = now

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration: the series depend on the node."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All GPU families of one scrape."""
        seen, now = self._latest.seen, self._now()
        gpus = seen.gpus if seen else ()
        samples = {gpu.uuid: self._latest.fresh(gpu.uuid, now) for gpu in gpus}
        yield from self._readings(samples)
        yield self._info(gpus)
        yield self._family("corral_gpu_up", {g: float(_good(sample)) for g, sample in samples.items()})
        yield self._family("corral_gpu_last_read_timestamp_seconds", self._last_reads())
        yield self._family("corral_gpu_fenced", {gpu: float(gpu in self._export.fenced) for gpu in samples})
        yield self._family("corral_gpu_held", {gpu: float(self._export.held.get(gpu, 0)) for gpu in samples})
        yield self._family("corral_gpu_nvlinks_down", {g: _down(s) for g, s in samples.items() if s and s.links})
        yield from self._xids(tuple(samples))

    def _readings(self, samples: dict[str, GpuSample | None]) -> Iterator[Metric]:
        for field, row in READINGS.items():
            values = {
                gpu: getattr(sample.readings, field) for gpu, sample in samples.items() if sample and sample.readings
            }
            known = {gpu: float(value) for gpu, value in values.items() if value is not None}
            if known:
                yield self._family(row.name, known)

    def _info(self, gpus: tuple[GpuIdentity, ...]) -> Metric:
        seen = self._latest.seen
        row = _ROWS["corral_gpu_info"]
        family = GaugeMetricFamily(row.name, row.help, labels=row.labels)
        for gpu in gpus:
            virtual = "true" if seen and seen.virtual else "false"
            node = (seen.node if seen else None) or ""
            family.add_metric((gpu.uuid, str(gpu.index), gpu.name or "", gpu.pci, node, virtual), 1.0)
        return family

    def _last_reads(self) -> dict[str, float]:
        return {gpu: view.good_at for gpu, view in self._latest.gpus.items() if view.good_at is not None}

    def _xids(self, gpus: tuple[str, ...]) -> Iterator[Metric]:
        known = self._export.xids
        yield self._family("corral_gpu_xids_total", {gpu: float(sum(known.get(gpu, {}).values())) for gpu in gpus})
        row = _ROWS["corral_gpu_xid_errors_total"]
        family = CounterMetricFamily(row.name, row.help, labels=row.labels)
        for gpu in gpus:
            for number, count in (dict.fromkeys(CRITICAL_XIDS, 0) | known.get(gpu, {})).items():
                family.add_metric((gpu, number), float(count))
        yield family

    @staticmethod
    def _family(name: str, values: dict[str, float]) -> Metric:
        row = _ROWS[name]
        kind = CounterMetricFamily if row.kind is Kind.COUNTER else GaugeMetricFamily
        family = kind(row.name, row.help, labels=row.labels)
        for gpu, value in values.items():
            family.add_metric((gpu,), value)
        return family


def _good(sample: GpuSample | None) -> bool:
    return sample is not None and sample.error is None and sample.readings is not None


def _down(sample: GpuSample) -> float:
    return float(sum(1 for link in sample.links.values() if link.state == 0))
