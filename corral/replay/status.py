"""The replicas of a recorded node, as its agent would list them. What is not known this time is as before."""

from msgspec.structs import replace

from agent.probes.replica import ReplicaProbe
from vocab.messages import ReplicaStatus
from vocab.observations import Member, ReplicaSeen


class Statuses:
    """The latest status of each replica of one node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._known: dict[str, ReplicaStatus] = {}
        self._told: tuple[ReplicaStatus, ...] = ()

    def all(self, probe: ReplicaProbe) -> tuple[ReplicaStatus, ...]:
        """All of them, as the judge regards them, in the order in which they were first seen."""
        regarded = map(probe.regard, self._known.values())
        self._told = tuple(replace(status, released=probe.released(status.replica)) for status in regarded)
        return self._told

    def are_news(self, probe: ReplicaProbe) -> bool:
        """Whether the judge regards them in another way than when they were last told."""
        return self._told != self.all(probe)

    def on(self, gpu: str | None) -> list[str]:
        """The replicas that run on a GPU."""
        return [name for name, status in self._known.items() if any(member.gpu == gpu for member in status.members)]

    def take(self, seen: ReplicaSeen) -> None:
        """One look at one replica."""
        before = self._known.get(seen.replica)
        phase = _phase(seen, before)
        known = seen.ready if seen.ready is not None else before.ready if before else phase == "ready"
        ready = known and phase == "ready"
        running = _latest(seen.running, before.running if before else None)
        waiting = _latest(seen.waiting, before.waiting if before else None)
        self._known[seen.replica] = ReplicaStatus(
            replica=seen.replica,
            deployment=seen.deployment or (before.deployment if before else ""),
            members=self._members(seen) or (before.members if before else ()),
            phase=phase,
            ready=ready,
            admitting=ready,
            stepping=phase != "stopped",
            running=running,
            waiting=waiting,
            open_requests=running + waiting if seen.open_requests is None else seen.open_requests,
            pid=seen.pids[0] if seen.pids else before.pid if before else None,
            exit=seen.exit,
            observed=seen.observed or (before is not None and before.observed),
            owner=seen.owner or (before.owner if before else None),
            serves=seen.serves and (before is None or before.serves),
            model=seen.model or (before.model if before else ""),
        )

    def _members(self, seen: ReplicaSeen) -> tuple[Member, ...]:
        if seen.members:
            return seen.members
        return tuple(Member(node=self._node, gpu=gpu, rank=rank) for rank, gpu in enumerate(seen.gpus))


def _latest(now: int | None, before: int | None) -> int:
    return now if now is not None else before or 0


def _phase(seen: ReplicaSeen, before: ReplicaStatus | None) -> str:
    if seen.exit is not None:
        return "stopped"
    if seen.phase is not None:
        return seen.phase
    if before is not None and before.phase in {"draining", "starting"} and not seen.ready:
        return before.phase
    return "ready" if seen.ready or (before is not None and before.phase == "ready") else "starting"
