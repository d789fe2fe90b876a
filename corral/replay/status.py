"""The replicas of a recorded node, as its agent would list them. What is not known this time is as before."""

import msgspec

from vocab.messages import ReplicaStatus
from vocab.observations import Member, ReplicaSeen

STILL_S = 5.0  # work without a step for that long: it no longer steps, as its agent would say


class Pulse(msgspec.Struct):
    """A replica's step counter, and when it last moved or had nothing to do."""

    step: int | None = None
    moved_at: float = 0.0


class Statuses:
    """The latest status of each replica of one node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._known: dict[str, ReplicaStatus] = {}
        self._pulses: dict[str, Pulse] = {}

    def all(self) -> tuple[ReplicaStatus, ...]:
        """All of them, in the order in which they were first seen."""
        return tuple(self._known.values())

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
            stepping=phase != "stopped" and self._steps(seen, running + waiting),
            running=running,
            waiting=waiting,
            open_requests=running + waiting if seen.open_requests is None else seen.open_requests,
            pid=seen.pids[0] if seen.pids else before.pid if before else None,
            exit=seen.exit,
            observed=seen.observed or (before is not None and before.observed),
        )

    def _members(self, seen: ReplicaSeen) -> tuple[Member, ...]:
        if seen.members:
            return seen.members
        return tuple(Member(node=self._node, gpu=gpu, rank=rank) for rank, gpu in enumerate(seen.gpus))

    def _steps(self, seen: ReplicaSeen, work: int) -> bool:
        pulse = self._pulses.setdefault(seen.replica, Pulse(moved_at=seen.at))
        if work == 0 or (seen.step is not None and seen.step != pulse.step):
            pulse.moved_at = seen.at
        pulse.step = pulse.step if seen.step is None else seen.step
        return seen.at - pulse.moved_at <= STILL_S


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
