"""The album: how each node looked when it was last drawn, so that a look at the fleet costs what has changed.

A node is drawn anew once something about it was touched; a new reading alone only replaces that reading.
"""

from collections import Counter
from itertools import islice

from msgspec.structs import replace

from controller.core import look
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.views import GpuView, NodeView, ReplicaView, View
from vocab.states import Health, Phase

COUNTED = ("total", "in_service", "free", "unhealthy", "stranded", "overcommitted")
REMOVED, IN_SERVICE = Phase.REMOVED.value, Phase.IN_SERVICE.value  # as plain words: they are compared for each GPU
ILL = frozenset({Health.FAILED.value, Health.LOST.value})


class Album:
    """Of one fleet, whose ``work`` says what to draw. The first look draws everything."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._nodes: dict[str, NodeView] = {}
        self._is_sorted = True  # the nodes, by name
        self._replicas: dict[str, tuple[ReplicaView, ...]] = {}  # by node, as far as it has any
        self._every: tuple[ReplicaView, ...] | None = ()  # those of all nodes by name; None: to be put together anew
        self._counts: dict[str, Counter[str]] = {}  # by node
        self._total: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))

    def view(self, now: float) -> View:
        """Everything at one moment."""
        work = self._fleet.work
        self.draw(now, len(work.looks) + len(work.readings))
        return look.view(self._fleet, now, self._in_order(), self._by_name(), dict(self._total))

    def draw(self, now: float, most: int) -> None:
        """Draw so many of the nodes that have changed: who looks next waits for the others only."""
        work = self._fleet.work
        for name in list(islice(work.looks, most)):
            del work.looks[name]
            work.readings.pop(name, None)
            self._draw(name, now)
            most -= 1
        for name in list(islice(work.readings, most)):
            if name not in work.looks:
                del work.readings[name]
                self._freshen(name)

    def _in_order(self) -> tuple[NodeView, ...]:
        if not self._is_sorted:
            self._nodes, self._is_sorted = dict(sorted(self._nodes.items())), True
        return tuple(self._nodes.values())

    def _by_name(self) -> tuple[ReplicaView, ...]:
        if self._every is None:
            found = [replica for replicas in self._replicas.values() for replica in replicas]
            self._every = tuple(sorted(found, key=lambda replica: replica.replica))
        return self._every

    def _draw(self, name: str, now: float) -> None:
        self._total.subtract(self._counts.pop(name, Counter()))
        known = self._fleet.nodes.get(name)
        if known is None:
            return
        self._is_sorted = self._is_sorted and name in self._nodes
        drawn = self._nodes[name] = look.node(self._fleet, known, now)
        counts = self._counts[name] = _counts(drawn.gpus)
        self._total.update(counts)
        self._draw_replicas(name)

    def _draw_replicas(self, name: str) -> None:
        living = [replica for replica in self._fleet.roster.at(name) if replica.node == name]
        if living or name in self._replicas:
            self._replicas[name] = tuple(look.replica(self._fleet, replica) for replica in living)
            self._every = None

    def _freshen(self, name: str) -> None:
        """Its readings, its last report and the figures of its replicas are new; nothing else is."""
        drawn, known = self._nodes.get(name), self._fleet.nodes.get(name)
        if drawn is None or known is None:
            return
        gpus = tuple(_read(self._fleet, gpu) for gpu in drawn.gpus)
        self._nodes[name] = replace(drawn, seen_at=known.reported_at, gpus=gpus)
        if self._replicas.get(name):
            self._draw_replicas(name)


def _read(fleet: Fleet, drawn: GpuView) -> GpuView:
    known = fleet.gpus.get(drawn.uuid)
    status = known.status if known is not None else None
    if status is None or status.readings is drawn.readings:
        return drawn
    return replace(drawn, readings=status.readings, error=status.error)


def _counts(gpus: tuple[GpuView, ...]) -> Counter[str]:
    """GPUs by what can be said of them, as ``COUNTED`` names it."""
    return Counter(
        total=sum(gpu.phase != REMOVED for gpu in gpus),
        in_service=sum(gpu.fresh and not gpu.holds and gpu.phase == IN_SERVICE for gpu in gpus),
        free=sum(gpu.placeable and gpu.replica is None for gpu in gpus),
        unhealthy=sum(gpu.health in ILL for gpu in gpus),
        stranded=sum(gpu.stranded for gpu in gpus),
        overcommitted=sum(gpu.replica is not None and not gpu.placeable for gpu in gpus),
    )
