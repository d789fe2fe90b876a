"""A person's order as its deeds read it: what it names, how it is told, and how it is refused."""

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.replicas import Replica
from controller.core.fleet.stimuli import Asked
from vocab.lines import ActionLine, NoteLine, Subject
from vocab.states import ActionKind


def place(asked: Asked) -> Subject | None:
    """The GPU or the node that it names, if any."""
    if asked.gpu is not None:
        return Subject(gpu=asked.gpu)
    return Subject(node=asked.node) if asked.node is not None else None


def exists(fleet: Fleet, subject: Subject) -> bool:
    """Whether there is such a GPU or node."""
    return subject.gpu in fleet.gpus or subject.node in fleet.nodes


def replicas(fleet: Fleet, asked: Asked) -> list[Replica]:
    """The living replicas that it names: one, those of a GPU or node, or a deployment's."""
    if asked.replica is not None:
        return [replica for replica in [fleet.roster.living.get(asked.replica)] if replica is not None]
    if asked.gpu is not None:
        return fleet.roster.on(asked.gpu)
    if asked.deployment is not None:
        return fleet.roster.of(asked.deployment)
    return fleet.roster.at(asked.node) if asked.node is not None else []


def actions(fleet: Fleet, asked: Asked, *kinds: ActionKind) -> list[ActionLine]:
    """The unfinished actions that it names: one, or those of a GPU, node, replica or incident."""
    live = fleet.ledger.live(*kinds)
    if asked.action is not None:
        return [action for action in live if action.id == asked.action]
    gpu = Subject(gpu=asked.gpu) if asked.gpu else None
    incidents = set(fleet.ledger.incidents_of.get(gpu, ())) if gpu else {asked.incident} if asked.incident else set()
    subjects = {Subject(node=asked.node)} if asked.node else {gpu} if gpu else set()
    subjects |= {replica.subject for replica in replicas(fleet, asked)}
    return [action for action in live if action.incident in incidents or action.subject in subjects]


def words(asked: Asked, deed: str) -> str:
    """Who did it, and why."""
    who = f"{deed} by {asked.by or asked.owner}"
    return f"{who}: {asked.reason}" if asked.reason else who


def refuse(asked: Asked, why: str, now: float, subject: Subject | None = None) -> NoteLine:
    """The answer to an order that is not carried out."""
    return NoteLine(at=now, subject=subject or place(asked) or Subject(), code="refused", text=f"{asked.do}: {why}")
