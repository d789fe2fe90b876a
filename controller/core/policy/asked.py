"""A person's order as its deeds read it: what it names, how it is told, and how it is refused."""

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.stimuli import Asked
from vocab.lines import NoteLine, Subject


def place(asked: Asked) -> Subject | None:
    """The GPU or the node that it names, if any."""
    if asked.gpu is not None:
        return Subject(gpu=asked.gpu)
    return Subject(node=asked.node) if asked.node is not None else None


def exists(fleet: Fleet, subject: Subject) -> bool:
    """Whether there is such a GPU or node."""
    return subject.gpu in fleet.gpus or subject.node in fleet.nodes


def words(asked: Asked, deed: str) -> str:
    """Who did it, and why."""
    who = f"{deed} by {asked.by or asked.owner}"
    return f"{who}: {asked.reason}" if asked.reason else who


def refuse(asked: Asked, why: str, now: float, subject: Subject | None = None) -> NoteLine:
    """The answer to an order that is not carried out."""
    return NoteLine(at=now, subject=subject or place(asked) or Subject(), code="refused", text=f"{asked.do}: {why}")
