"""Forgotten: conditions that their node's agent can no longer end, for it has lost its disk and does not know of them.

A condition that ends when its signal returns is ended by who opened it. An agent says since when it remembers; what it
opened before that it will never end. So once it has had the time to see the signal again, and has not, the condition
is over: of a GPU only if that is read, of a node only if all its GPUs are there. What a reset, a reboot or a person
ends is not touched. Times of events are the node's own, and so is ``remembers_since``.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from controller.core.faults.conditions import end
from controller.core.fleet.claims import CODE as CLAIMED
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.nodes import Gpu
from vocab.lines import ConditionLine
from vocab.messages import NodeFacts
from vocab.states import ClearsOn, NodeState

BECAUSE = "its node has lost its memory of it and does not see it again"


def close(fleet: Fleet, now: float) -> Iterator[ConditionLine]:
    """End what no agent remembers, a grace after it was heard that it does not."""
    for name in [name for name, due in fleet.forgetful.items() if now >= due]:
        facts = fleet.node(name).facts
        del fleet.forgetful[name]
        if facts is None or facts.remembers_since is None:
            continue
        for condition in _of(fleet, name):
            if condition.last_at > facts.remembers_since:
                continue
            if _can_be_seen(fleet, condition, facts, now):
                yield replace(end(condition, now), cleared_because=BECAUSE)
            else:
                fleet.doubt_memory(facts, now)


def _of(fleet: Fleet, node: str) -> list[ConditionLine]:
    """The open conditions of a node, its GPUs and its replicas that their signal's return ends."""
    ledger = fleet.ledger
    found = [ledger.conditions[key] for key in ledger.open_conditions.values()]
    mine = [one for one in found if one.clears_on is ClearsOn.SIGNAL and _node_of(fleet, one) == node]
    return [one for one in mine if _is_of_agent(fleet, one)]


def _is_of_agent(fleet: Fleet, condition: ConditionLine) -> bool:
    """Whether an agent opened it: what the controller itself sees it ends itself."""
    return bool(condition.events) and condition.code != CLAIMED


def _node_of(fleet: Fleet, condition: ConditionLine) -> str | None:
    subject = condition.subject
    if subject.gpu in fleet.gpus:
        return fleet.gpus[subject.gpu or ""].node
    replica = fleet.roster.find(subject.replica)
    if replica is not None and not replica.is_group:
        return replica.node  # of a group it is whose agent said so
    events = (fleet.ledger.events[key].node for key in condition.events if key in fleet.ledger.events)
    return subject.node or next(events, None)


def _can_be_seen(fleet: Fleet, condition: ConditionLine, facts: NodeFacts, now: float) -> bool:
    """Whether the node would tell if the signal were still bad: absent is never healthy."""
    if fleet.node_state(facts.node) != NodeState.LIVE:
        return False
    gpus = fleet.gpus_at(facts.node)
    if condition.subject.gpu in fleet.gpus:
        gpus = [fleet.gpus[condition.subject.gpu or ""]]
    return all(_is_read(gpu, facts, now) or fleet.has_left(gpu.identity.uuid) for gpu in gpus)


def _is_read(gpu: Gpu, facts: NodeFacts, now: float) -> bool:
    """Whether it was read since, and is."""
    since = facts.remembers_since or 0.0
    return gpu.is_fresh(now) and gpu.answers and gpu.status is not None and gpu.status.at > since
