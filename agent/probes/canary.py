"""A check with a known answer that gave another one: the GPU computes wrong. Only a person may trust it again.

Of all checks only this one proves something of the hardware by itself; what others say is joined with what is known.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Verdict
from agent.probes.scene import Scene
from vocab.events import Recovery, Scope, Severity, Source
from vocab.observations import AnyObservation, Check, ReplicaSeen

CODE, CANARY = "silent_corruption", "canary"


class CanaryProbe(msgspec.Struct):
    """Remembers on which GPUs each replica runs, and which GPUs were found wrong."""

    replicas: dict[str, tuple[str, ...]] = {}
    steps: dict[str, int] = {}
    still: set[str] = set()  # replicas that have work and did not step between their last two looks
    turns: dict[str, int] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take the outcome of a check in."""
        match observation:
            case ReplicaSeen(replica=replica):
                gpus = tuple(member.gpu for member in observation.members) or observation.gpus
                self.replicas[replica] = gpus or self.replicas.get(replica, ())
                self._step(observation)
            case Check(check="canary", result="problem"):
                return self._failed(observation)
        return ()

    def _step(self, seen: ReplicaSeen) -> None:
        if seen.step is None:
            return
        is_still = self.steps.get(seen.replica) == seen.step and bool(seen.running or seen.waiting)
        (self.still.add if is_still else self.still.discard)(seen.replica)
        self.steps[seen.replica] = seen.step

    def _failed(self, check: Check) -> Sequence[Verdict]:
        if check.gpu is None and check.replica in self.still:
            return ()  # an engine that does not step gives no answer at all: a witness of its stall, not of its GPU
        gpus = (check.gpu,) if check.gpu else self.replicas.get(check.replica or "", ())
        alone = gpus[0] if len(gpus) == 1 else None  # of several nobody can say which one computed wrong
        if alone is None and check.replica is None:
            return ()
        key = alone or check.replica or ""
        self.turns[key] = self.turns.get(key, 0) + 1
        fields = {"check": check.check, "check_code": check.code, "gpus": list(gpus)}
        found = node_finding(
            CODE,
            check.at,
            check.text or "a check with a known answer gave another one",
            source=Source.CHECK,
            gpu=alone,
            scope=None if alone else Scope.REPLICA,
            severity=None if alone else Severity.ERROR,
            recovery=None if alone else Recovery.INVESTIGATE,
            first=(key, self.turns[key]),
            fields=fields if alone else fields | {"replica": check.replica},
            readings=check.readings,
        )
        return (found,)

    def forget(self, gpu: str) -> None:
        """What computes wrong does so after a reset too."""
