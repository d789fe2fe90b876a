"""The red button: a pause of everything, of a pool or of a node, and what the PAUSE file of a node does.

They add up: what one of them stops goes on only once none stands. A pause stops what harms; releases, recovery and
what a person orders go on.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.stimuli import Asked
from controller.core.fleet.views import PauseView
from controller.core.policy.asked import refuse, words
from vocab.lines import ActionLine, HoldLine, NoteLine, Subject
from vocab.states import ActionState

PAUSED, RESUMED = "paused", "resumed"
MAINTENANCE = "maintenance"  # the owner of the hold under which people work on a node
HOW = "automation is paused"  # with this begins why an action is held back by a pause


def note_on(fleet: Fleet, node: str) -> NoteLine | None:
    """The pause that a person has put on a node: on everything, on its pool or on itself, first match."""
    pauses = fleet.ledger.pauses
    return pauses.everywhere or pauses.pools.get(fleet.pool_of(node) or "") or pauses.nodes.get(node)


def why_on(fleet: Fleet, node: str) -> str | None:
    """Why nothing harmful is done on a node now; None if nothing forbids it."""
    note = note_on(fleet, node)
    if note is not None:
        return f"{HOW}: {note.text}"
    if (hold := maintained(fleet, node)) is not None:
        return f"{HOW}: {hold.reason}"
    return f"{HOW} by a file on {node}" if fleet.node(node).paused else None


def maintained(fleet: Fleet, node: str) -> HoldLine | None:
    """The hold of a maintenance: people are at work on the node, so nothing harmful is done there."""
    return next(filter(is_maintenance, fleet.ledger.standing(Subject(node=node), MAINTENANCE)), None)


def is_maintenance(hold: HoldLine) -> bool:
    """Whether it is the hold of one: it says when it ends. Others may have placed one under its name before."""
    return hold.owner == MAINTENANCE and hold.until is not None


def is_paused(fleet: Fleet, node: str) -> bool:
    """Whether the node's agent is to do nothing harmful: by a pause, or because people are at work on it."""
    return note_on(fleet, node) is not None or maintained(fleet, node) is not None


def is_held_back(action: ActionLine) -> bool:
    """Whether a pause is what an action waits for."""
    return action.state is ActionState.WOULD and action.why.startswith(HOW)


def standing(fleet: Fleet) -> Iterator[PauseView]:
    """All that stand, the widest first. Since when a file stands, its node does not say."""
    pauses = fleet.ledger.pauses
    if pauses.everywhere is not None:
        yield PauseView(scope="fleet", since=pauses.everywhere.at, why=pauses.everywhere.text)
    for pool, note in sorted(pauses.pools.items()):
        yield PauseView(scope="pool", name=pool, since=note.at, why=note.text)
    for name, note in sorted(pauses.nodes.items()):
        yield PauseView(scope="node", name=name, since=note.at, why=note.text)
    for name in sorted(fleet.nodes):
        if fleet.nodes[name].paused:
            yield PauseView(scope="file", name=name, why=f"by a PAUSE file on {name}")


def pause(fleet: Fleet, asked: Asked, now: float) -> Iterator[NoteLine]:
    """Begin one; one that stands already is left as it is."""
    yield from _say(fleet, asked, PAUSED, now, stands=False)


def resume(fleet: Fleet, asked: Asked, now: float) -> Iterator[NoteLine]:
    """End one, and no other."""
    yield from _say(fleet, asked, RESUMED, now, stands=True)


def _say(fleet: Fleet, asked: Asked, code: str, now: float, *, stands: bool) -> Iterator[NoteLine]:
    if asked.pool is not None and asked.pool not in fleet.pools and asked.pool not in fleet.ledger.pauses.pools:
        known = ", ".join(sorted(fleet.pools)) or "none is configured"
        yield refuse(asked, f"there is no pool {asked.pool!r}; known: {known}", now)
    elif asked.node is not None and asked.node not in fleet.nodes and asked.node not in fleet.ledger.pauses.nodes:
        yield refuse(asked, f"there is no node {asked.node!r}", now)
    elif _stands(fleet, asked) is stands:
        yield NoteLine(at=now, subject=Subject(node=asked.node), code=code, text=words(asked, code), pool=asked.pool)


def _stands(fleet: Fleet, asked: Asked) -> bool:
    pauses = fleet.ledger.pauses
    if asked.pool is not None:
        return asked.pool in pauses.pools
    return asked.node in pauses.nodes if asked.node is not None else pauses.everywhere is not None
