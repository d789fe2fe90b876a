"""Placement: on which GPUs a replica starts. Its members are on one node; a tie is decided by a hash of ids.

A GPU takes work if it is fresh and answers, in service, not held, not failed or lost, without a replica, its node is
live and has booted, is nobody else's to give work to, and no condition blocks it (memory that nobody owns up to, a
driver that could start nothing).
A replica of several GPUs stays within an NVLink island where it can, or must if its deployment requires one. Then
spread comes before density: a node with fewer replicas of the deployment first, then members on one NUMA node, then a
node with less room left over.
A group takes equally many GPUs of several nodes, ranked like that, of one driver version and, where there is room, in
one NVLink fabric or else one failure domain: all of it or nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.free import Free, way
from controller.core.fleet.nodes import Gpu
from controller.core.fleet.stimuli import Deployment
from controller.core.fleet.togetherness import Apart, nearest
from controller.core.placement.islands import fabrics_at, islands_at
from controller.core.repairs.workflow import phase_of
from vocab.lines import Target
from vocab.states import Health, NodeState, Phase


def is_placeable(fleet: Fleet, gpu: Gpu, now: float) -> bool:
    """Whether a GPU takes new work, were it empty."""
    return takes_work(fleet, gpu.node) and is_able(fleet, gpu, now)


def takes_work(fleet: Fleet, node: str) -> bool:
    """Whether a node takes new work, if its GPUs do."""
    known = fleet.node(node)
    return (
        known.was_heard
        and not known.is_booting
        and fleet.node_state(node) == NodeState.LIVE
        and not fleet.managers.may_own(node)
    )


def is_able(fleet: Fleet, gpu: Gpu, now: float) -> bool:
    """Whether a GPU takes new work, were it empty, if its node does."""
    uuid = gpu.identity.uuid
    return (
        gpu.is_fresh(now)
        and gpu.answers
        and (fleet.is_clear(uuid) or _is_sound(fleet, uuid, now))
        and not fleet.along.takes(uuid)
    )


def _is_sound(fleet: Fleet, uuid: str, now: float) -> bool:
    return (
        not fleet.holds_on(uuid)
        and fleet.health(uuid) not in {Health.FAILED, Health.LOST}
        and phase_of(fleet, uuid, now) is Phase.IN_SERVICE
        and not fleet.is_blocked(uuid)
    )


def is_free(fleet: Fleet, gpu: Gpu, now: float) -> bool:
    """Whether it is placeable and without a replica."""
    return not fleet.roster.on(gpu.identity.uuid) and is_placeable(fleet, gpu, now)


def _look(fleet: Fleet, now: float) -> Free:
    """The free GPUs. Only those that were touched since the last look are asked about anew."""
    unsure, fleet.work.unsure = fleet.work.unsure, {}
    for uuid in unsure:
        gpu = fleet.gpus.get(uuid)
        if gpu is not None and is_free(fleet, gpu, now):
            fleet.free.put(gpu, fleet.pool_of(gpu.node), fleet.node(gpu.node).facts)
        else:
            fleet.free.drop(uuid)
    return fleet.free


def choose(
    fleet: Fleet,
    deployment: Deployment,
    replica: str,
    now: float,
    but: frozenset[str] = frozenset(),
    *,
    spares: bool = True,
) -> Target | None:
    """Where the replica goes, on no node of ``but``; None if there is no room for all its members.

    ``spares``: it may take what a pool keeps for replacements.
    """
    search = _Search(fleet, deployment, replica, now, but, spares=spares)
    if deployment.nodes_per_replica > 1:
        return search.group(deployment.nodes_per_replica)
    options = [search.option(node) for node in search.special]
    if not deployment.gpus:
        options += search.others()
    found = min((option for option in options if option is not None), default=None, key=lambda option: option[0])
    return None if found is None else Target(node=found[1], gpus=search.pick(found[1]))


Option = tuple[tuple[Any, ...], str]  # rank and node
Company = tuple[int, str, str]  # how far apart its nodes are; in which fabric or domain, and with which driver version
REQUIRED = "required"
FABRIC, DOMAIN, FLEET = 0, 1, 2  # one fabric, one failure domain, or neither


class _Search:
    """One look for a place. The nodes that are unlike others (``special``) are ranked one by one.

    Of the others, which differ in how many are free and how near these are, the first of each kind is the best.
    """

    def __init__(
        self, fleet: Fleet, deployment: Deployment, replica: str, now: float, but: frozenset[str], *, spares: bool
    ) -> None:
        self._fleet, self._now, self._replica, self._but, self._spares = fleet, now, replica, but, spares
        self._wanted, self._pinned = deployment.gpus_per_node, frozenset(deployment.gpus)
        self._whole, self._must = deployment.gpus_per_replica, deployment.island == REQUIRED
        self._free = _look(fleet, now)
        since = now - fleet.settings.limits.window_s
        self._burnt = {gpu for _, gpus in fleet.roster.failures(deployment.name, since) for gpu in gpus}
        self._there = Counter(node for other in fleet.roster.of(deployment.name) for node in other.nodes)
        known = (fleet.gpus.get(uuid) for uuid in sorted(self._burnt | self._pinned))
        self.special = list(dict.fromkeys([*self._there, *(gpu.node for gpu in known if gpu is not None)]))

    def others(self) -> Iterator[Option]:
        """The best of each kind of node that is not special."""
        special, seen, least = frozenset(self.special), set(), self._free.least_apart(self._wanted)
        for node in self._free.nodes(self._wanted, self._replica):
            option = None if node in special else self.option(node)
            if option is None:
                continue
            apart = option[0][1], option[0][3]
            if apart not in seen:
                seen.add(apart)
                yield option
            if apart <= least:
                return

    def group(self, size: int) -> Target | None:
        """Where all members of a group of so many nodes go; its leader is on the best of them."""
        domains = self._domains()
        found: dict[Company, list[Option]] = defaultdict(list)
        good: Counter[Company] = Counter()
        least = self._free.least_apart(self._wanted)
        known = self.special if self._pinned else [*self.special, *self._free.nodes(self._wanted, self._replica)]
        for node in dict.fromkeys(known):
            option = self.option(node)
            if option is None:
                continue
            rank, companies = option[0], self._companies(node, domains.get(node, []))
            for company in companies:
                found[company].append(option)
                good[company] += not rank[0] and (rank[1], rank[3]) <= least and not rank[2]
                if good[company] == size and company[0] == companies[0][0]:
                    return self._joined(sorted(found[company])[:size])  # what comes later is not better
        rooms = ((company[0], sorted(options)[:size]) for company, options in found.items() if len(options) >= size)
        best = min(rooms, default=None)
        return None if best is None else self._joined(best[1])

    def _companies(self, node: str, domains: list[str]) -> list[Company]:
        """With whom a node may form a group, the nearest first: nodes of its driver version."""
        facts = self._fleet.node(node).facts
        driver = (facts.driver if facts is not None else None) or ""
        fabrics = fabrics_at(self._fleet, node)
        found = [(FABRIC, fabrics[0], driver)] if len(fabrics) == 1 else []
        return [*found, *((DOMAIN, name, driver) for name in domains), (FLEET, "", driver)]

    def _domains(self) -> dict[str, list[str]]:
        """The failure domains of each node."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, nodes in self._fleet.domains.items():
            for node in nodes:
                found[node].append(name)
        return found

    def _joined(self, options: list[Option]) -> Target:
        picks = [(node, gpu) for _, node in options for gpu in self.pick(node)]
        nodes, gpus = zip(*picks, strict=True)
        return Target(node=nodes[0], gpus=gpus, nodes=nodes)

    def option(self, node: str) -> Option | None:
        """A node's rank: the least is the best. None if it has no room."""
        gpus = self._gpus(node)
        if node in self._but or len(gpus) < self._wanted or self._is_kept(node):
            return None
        (over_islands, over_numa), _ = self._nearest(node, gpus)
        if self._must and over_islands:
            return None
        unburnt = sum(gpu.identity.uuid not in self._burnt for gpu in gpus)
        way_on = way(self._replica, node)
        return (unburnt < self._wanted, over_islands, self._there[node], over_numa, len(gpus), *way_on), node

    def pick(self, node: str) -> tuple[str, ...]:
        """Its GPUs on this node: near each other, then those on which it did not fail, and healthy ones."""
        _, groups = self._nearest(node, self._gpus(node))
        picks = [sorted(group, key=self._rank_gpu)[: self._wanted] for group in groups]
        best = min(picks, key=lambda pick: [self._rank_gpu(gpu) for gpu in pick])
        return tuple(gpu.identity.uuid for gpu in sorted(best, key=lambda gpu: gpu.identity.index))

    def _gpus(self, node: str) -> list[Gpu]:
        pinned = self._pinned
        found = (gpu for gpu in self._free.at(node) if gpu.is_fresh(self._now))
        mine = [gpu for gpu in found if not pinned or gpu.identity.uuid in pinned]
        if not self._must or self._wanted == 1:
            return mine
        known = {uuid for island in islands_at(self._fleet, node) for uuid in island}
        return [gpu for gpu in mine if gpu.identity.uuid in known]

    def _is_kept(self, node: str) -> bool:
        return not self._spares and self._free.keeps(self._fleet.pool_of(node), self._whole)

    def _nearest(self, node: str, gpus: list[Gpu]) -> tuple[Apart, list[list[Gpu]]]:
        if self._wanted == 1:
            return nearest(gpus, 1, ())
        unburnt = [gpu for gpu in gpus if gpu.identity.uuid not in self._burnt]
        enough = unburnt if len(unburnt) >= self._wanted else gpus
        return nearest(enough, self._wanted, islands_at(self._fleet, node))

    def _rank_gpu(self, gpu: Gpu) -> tuple[object, ...]:
        uuid = gpu.identity.uuid
        return uuid in self._burnt, self._fleet.health(uuid) is not Health.HEALTHY, gpu.identity.index, uuid
