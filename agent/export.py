"""The agent's /metrics: its own health through Prometheus' client, the GPUs' series as text beside it.

``/metrics?full=1`` has every reading, link and MIG instance as well.
"""

import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol

from agent.engine_series import said
from agent.gpu_series import CRITICAL_XIDS, Standing, dcgm, families, full
from agent.latest import Latest
from agent.probes.sane import IMPLAUSIBLE
from agent.series import text
from agent.sources.health import Health
from vocab.events import Event
from vocab.messages import NodeFacts
from vocab.metrics.agent import SELF
from vocab.observations import AnyObservation, GpuSample
from wire.exposition import Exposition

__all__ = ["CRITICAL_XIDS", "AgentExposition", "Export"]

PHASES = ("starting", "ready", "draining", "stopped")
MOST_TAKEN = 1024  # observations between two scrapes whose times are remembered one by one
MOST_COUNTED = 4096  # events whose count is remembered, so that a revision adds only its growth


class Healthy(Protocol):
    """A source that reads in a child process."""

    @property
    def name(self) -> str: ...

    @property
    def health(self) -> Health: ...


class AgentExposition(Exposition):
    """The registry's text, then that of the GPUs. ``dcgm_names`` adds dcgm-exporter's names."""

    def __init__(self, latest: Latest, standing: Standing, now: Callable[[], float], *, dcgm_names: bool) -> None:
        super().__init__(SELF)
        self._latest = latest
        self._standing = standing
        self._now = now
        self._hostname = socket.gethostname() if dcgm_names else None
        self.before: Callable[[], None] = lambda: None  # what sets figures that are gathered elsewhere

    def render(self, *, wide: bool = False) -> tuple[bytes, str]:
        """The body and content type of a scrape; ``wide`` shows everything."""
        self.before()
        body, content_type = super().render()
        now = self._now()
        shown = [*families(self._latest, self._standing, now), *said(self._latest, now)]
        if wide:
            shown += full(self._latest, now)
        if self._hostname is not None:
            shown += dcgm(self._latest, self._standing, self._hostname, now)
        return body + text(shown), content_type


class Export:
    """The registry of this process, and the counters that are not read from elsewhere."""

    def __init__(
        self,
        latest: Latest,
        now: Callable[[], float],
        counted: dict[str, int] | None = None,
        *,
        dcgm_names: bool = False,
    ) -> None:
        self.standing = Standing()
        self.exposition = AgentExposition(latest, self.standing, now, dcgm_names=dcgm_names)
        self._now = now
        self._dropped = 0
        self._counted: OrderedDict[str, int] = OrderedDict(counted or {})
        self._sources: tuple[Healthy, ...] = ()
        self._restarts: dict[str, int] = {}
        self._taken: list[float] = []  # seconds; these four go to the registry when somebody scrapes
        self._kinds: Counter[str] = Counter()
        self._reads: Counter[tuple[str, str]] = Counter()  # (source, result)
        self._read_at: dict[str, float] = {}
        self.exposition.before = self._tell

    def took(self, observation: AnyObservation, seconds: float) -> None:
        """Count one observation, what a read of a GPU came to, and how long all of it took."""
        self._taken.append(seconds)
        self._kinds[str(observation.__struct_config__.tag)] += 1
        if isinstance(observation, GpuSample):
            self._read(observation)
        if len(self._taken) >= MOST_TAKEN:
            self._tell()

    def _read(self, sample: GpuSample) -> None:
        source = sample.source or "nvml"
        if sample.error is not None:
            self._reads[source, "failed"] += 1
            return
        self._reads[source, "partial" if sample.errors or sample.link_errors else "whole"] += 1
        self._read_at[source] = self._now()

    def _tell(self) -> None:
        """Bring what was gathered to the registry, whose metrics cost more than what they count."""
        times = self.exposition.histogram("corral_agent_take_seconds")
        for seconds in self._taken:
            times.observe(seconds)
        for kind, count in self._kinds.items():
            self.count("corral_agent_observations_total", count, obs=kind)
        for (source, result), count in self._reads.items():
            self.count("corral_agent_reads_total", count, source=source, result=result)
        for source, at in self._read_at.items():
            self.set("corral_agent_source_last_success_timestamp_seconds", at, source=source)
        for gathered in (self._taken, self._kinds, self._reads, self._read_at):
            gathered.clear()

    def rejected(self, sample: GpuSample) -> None:
        """Count the values of a cleaned sample that were none, by field; a link's as ``link_…``."""
        for name, why in sample.errors.items():
            if why == IMPLAUSIBLE:
                self.count("corral_agent_rejected_values_total", field=name)
        for errors in sample.link_errors.values():
            for name, why in errors.items():
                if why == IMPLAUSIBLE:
                    self.count("corral_agent_rejected_values_total", field=f"link_{name}")

    def watch(self, sources: Iterable[object]) -> None:
        """Show the health of those among these sources that have one."""
        self._sources = tuple(source for source in sources if hasattr(source, "health"))  # type: ignore[misc]  # just asked

    def refresh(self) -> None:
        """Set what is only looked at when somebody scrapes."""
        for source in self._sources:
            health = source.health
            self.set("corral_agent_read_seconds", health.read_s, source=source.name)
            self.set("corral_agent_call_seconds", health.call_s, source=source.name)
            grown = health.starts - self._restarts.get(source.name, 1)
            self.count("corral_agent_child_restarts_total", max(0, grown), source=source.name)
            self._restarts[source.name] = max(1, health.starts)

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
            of_gpu = self.standing.xids.setdefault(event.gpu, {})
            of_gpu[number] = of_gpu.get(number, 0) + grown
            self.standing.last_xid[event.gpu] = int(number)
