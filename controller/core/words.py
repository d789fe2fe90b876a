"""The one word that is shown for a GPU and a replica, and the line when it changes.

The words are derived, never decided: a line follows from conditions, holds, actions and the age of readings.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from controller.core.fleet import replicas
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.nodes import Gpu
from controller.core.fleet.replicas import Replica
from controller.core.repairs.workflow import phase_of
from vocab.lines import StateLine, Subject, Target
from vocab.states import ActionKind, Health, NodeState, Phase, ReplicaState, shown


def announce(fleet: Fleet, now: float) -> Iterator[StateLine]:
    """The words that have changed among what was touched. A GPU that was never anything but healthy is silent."""
    touched, fleet.work.words = fleet.work.words, {}
    for subject in sorted(touched, key=_place):
        if subject.gpu is not None and subject.gpu in fleet.gpus:
            yield from _of_gpu(fleet, subject.gpu, now)
        elif (replica := fleet.roster.find(subject.replica)) is not None:
            yield from _of_replica(fleet, replica, now)


def _place(subject: Subject) -> tuple[bool, str, str]:
    """GPUs first, then replicas, each by name: the order does not tell in which order they were touched."""
    return subject.gpu is None, subject.gpu or "", subject.replica or ""


def of_gpu(fleet: Fleet, gpu: str, now: float, phase: Phase | None = None) -> str | None:
    """A GPU's word; None while its first reading is still awaited and nothing else is known of it.

    What it said last is history if its node is heard no more. ``phase``: its own, where the caller knows it.
    """
    known = fleet.gpus[gpu]
    clear, awaited = fleet.is_clear(gpu), known.is_awaited(now)
    health = Health.HEALTHY if clear else fleet.health(gpu)
    held = not clear and bool(fleet.holds_on(gpu))
    phase = phase or phase_of(fleet, gpu, now)
    word = shown(health=health, fresh=awaited or known.is_fresh(now), held=held, phase=phase)
    if awaited and word == Health.HEALTHY and known.period_s > 0:
        return None
    is_heard = fleet.node_state(known.node) == NodeState.LIVE
    return word if is_heard else shown(health=health, fresh=False, held=held, phase=phase)


def _of_gpu(fleet: Fleet, gpu: str, now: float) -> Iterator[StateLine]:
    subject = Subject(gpu=gpu)
    before, to = fleet.ledger.words.get(subject), of_gpu(fleet, gpu, now)
    if to is not None and to != (before or Health.HEALTHY):
        known = fleet.gpus[gpu]
        if before is None and known.sampled_at is not None and known.known_at < now:
            before = Health.HEALTHY  # it was shown so, and nothing was said of it
        yield StateLine(at=now, subject=subject, from_=before, to=to, why=_why_gpu(fleet, known, to))


def _why_gpu(fleet: Fleet, gpu: Gpu, to: str) -> str:
    if to == "unknown":
        state = fleet.node_state(gpu.node)
        return "no reading for too long" if state == NodeState.LIVE else f"its node is {state}"
    reasons = [condition.code for condition in fleet.conditions_on(Subject(gpu=gpu.identity.uuid))]
    reasons += [f"held by {hold.owner}" for hold in fleet.holds_on(gpu.identity.uuid)]
    return ", ".join(reasons) or "nothing is wrong with it"


def _of_replica(fleet: Fleet, replica: Replica, now: float) -> Iterator[StateLine]:
    goal = fleet.word_of(replica)
    why = _why_replica(fleet, replica, goal)
    for _ in range(2):  # one step, or one with a step between
        before = fleet.ledger.words.get(replica.subject)
        to = replicas.reachable(before, goal)
        if to is None or to == before:
            return
        line = StateLine(at=now, subject=replica.subject, from_=before, to=to, why=why)
        if replica.start is None:
            where = Target(node=replica.node, gpus=replica.gpus, nodes=replica.places)
            line = replace(line, deployment=replica.deployment, target=where, observed=replica.observed)
        yield line


def _why_replica(fleet: Fleet, replica: Replica, to: ReplicaState) -> str:
    actions = fleet.ledger.of_subject(replica.subject, *_ENDING) if to in _GOING else []
    if actions:
        return f"{actions[-1].of}: {actions[-1].why}"
    incident = replicas.incident_of(fleet.ledger, replica)
    if incident is not None and to is not ReplicaState.READY:
        return f"a GPU of it is held for {fleet.ledger.incidents[incident].code}"
    codes = [condition.code for condition in fleet.conditions_on(replica.subject)]
    if codes and to is not ReplicaState.READY:
        return ", ".join(codes)
    status = replica.status
    if status is not None and status.phase == "ready" and not status.admitting:
        for hold in (hold for gpu in replica.gpus for hold in fleet.holds_on(gpu)):
            return f"it is shut: {hold.subject.gpu or hold.subject.node} is held by {hold.owner}: {hold.reason}"
    if status is not None and status.exit is not None:
        return f"exit: {status.exit.reason or status.exit.text or status.exit.code}"
    if status is not None:
        return "its agents report it so" if replica.is_group else "its agent reports it so"
    return f"placed on {', '.join(replica.nodes)}"


_ENDING = (ActionKind.DRAIN, ActionKind.STOP_REPLICA)
_GOING = frozenset({ReplicaState.DRAINING, ReplicaState.STOPPED})
