"""What a stimulus tells: the fleet takes it in, and the lines that follow from it directly are yielded."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from controller.core import operator
from controller.core.faults import conditions
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import ADOPTED, FLEET
from controller.core.fleet.settings import COLD_START_S
from controller.core.fleet.stimuli import (
    Adopted,
    AnyStimulus,
    Arrived,
    Asked,
    Deaf,
    Declared,
    Deployment,
    Knocked,
    Managed,
    Managing,
    NodeReported,
    Reached,
    Recalled,
    Replicas,
    Reported,
    Sampled,
    Shaped,
)
from controller.core.policy.own import is_own, own
from controller.core.policy.policy import subject_of
from controller.core.policy.shadow import as_changed
from controller.core.repairs import holds
from controller.core.replicas import actions, restart
from vocab.lines import AnyLine, EventLine, NoteLine, Subject
from vocab.messages import ActionItem, ClearedItem, EventItem, FenceItem
from vocab.states import NodeState

Lines = Iterator[AnyLine]
TOO_SHORT = "stop_time_too_short"


def hear(fleet: Fleet, stimulus: AnyStimulus, now: float) -> Lines:
    """Take one stimulus in. What is known already yields nothing and stirs nothing."""
    return _EARS[type(stimulus)](fleet, stimulus, now)


def _adopted(fleet: Fleet, stimulus: Adopted, now: float) -> Lines:
    fleet.settings = replace(stimulus.settings, epoch=fleet.settings.epoch)
    yield NoteLine(at=now, subject=FLEET, code=ADOPTED, text=stimulus.words)


def _shaped(fleet: Fleet, stimulus: Shaped, _now: float) -> Lines:
    fleet.divide(stimulus.pools, stimulus.domains, stimulus.spares)
    fleet.powered = frozenset(stimulus.powered)
    fleet.stirred = True
    return iter(())


def _recalled(fleet: Fleet, stimulus: Recalled, now: float) -> Lines:
    if fleet.node(stimulus.facts.node).facts_at is None:
        fleet.learn(stimulus.facts, now)
        fleet.stirred = True
    return iter(())


def _declared(fleet: Fleet, stimulus: Declared, now: float) -> Lines:
    declared = stimulus.deployment
    if fleet.deployments.get(declared.name) != declared:
        fleet.deployments[declared.name] = declared
        (fleet.roster.ours.add if declared.managed_by == restart.OURS else fleet.roster.ours.discard)(declared.name)
        fleet.touch(Subject(deployment=declared.name))
        fleet.stirred = True
        yield from _cut_short(fleet, declared, now)


def _cut_short(fleet: Fleet, declared: Deployment, now: float) -> Lines:
    """Warn once of a manager that kills before a drain can be over."""
    needed, given = declared.prestop_s + declared.drain_s, declared.manager_kill_s
    if given is None or given > needed:
        return
    text = (
        f"{declared.managed_by} kills {declared.name} after {given:g} s, but a drain takes {declared.prestop_s:g} +"
        f" {declared.drain_s:g} s: give it more than {needed:g} s, or shorten the drain"
    )
    note = NoteLine(at=now, subject=Subject(deployment=declared.name), code=TOO_SHORT, text=text)
    if (note.subject, note.code, note.text) not in fleet.ledger.notes:
        yield note


def _node_reported(fleet: Fleet, stimulus: NodeReported, now: float) -> Lines:
    node = fleet.node(stimulus.facts.node)
    node.told_at = now
    if node.facts_at is None or node.facts != stimulus.facts:
        if node.facts_at is None:
            node.facts_at = now
            fleet.patience.hear(node.name)
            fleet.patience.expect(node.name)
            fleet.agenda.remind(now + COLD_START_S, Subject(node=node.name))
        fleet.learn(stimulus.facts, now)
        fleet.stirred = True
    return iter(())


def _reported(fleet: Fleet, stimulus: Reported, now: float) -> Lines:
    node = fleet.node(stimulus.node)
    news = not node.was_heard or node.paused != stimulus.paused or node.reported_at is None
    news = news or fleet.node_state(stimulus.node) != NodeState.LIVE
    fleet.work.readings[node.name] = None
    node.report(now, paused=stimulus.paused)
    fleet.patience.hear(node.name)
    fleet.agenda.watch(Subject(node=node.name), node.silent_at)
    for name in (node.name, *fleet.doubted) if news or fleet.doubted else ():
        fleet.touch(Subject(node=name))
        fleet.stirred = True
    return iter(())


def _knocked(fleet: Fleet, stimulus: Knocked, now: float) -> Lines:
    node = fleet.nodes.get(stimulus.node)
    if node is not None and fleet.node_state(stimulus.node) == NodeState.LIVE:  # any other comes back when it is heard
        node.knock(now)
    return iter(())


def _deaf(fleet: Fleet, stimulus: Deaf, now: float) -> Lines:
    for node in fleet.nodes.values():
        if fleet.node_state(node.name) == NodeState.LIVE:
            node.excuse(stimulus.seconds, now)
    return iter(())


def _sampled(fleet: Fleet, stimulus: Sampled, now: float) -> Lines:
    fleet.stirred = fleet.sample(own(fleet, stimulus.node, stimulus.gpus), now) or fleet.stirred
    return iter(())


def _replicas(fleet: Fleet, stimulus: Replicas, now: float) -> Lines:
    news = fleet.list_replicas(stimulus.node, stimulus.statuses, now, whole=stimulus.whole)
    fleet.stirred = fleet.stirred or news
    return iter(())


def _arrived(fleet: Fleet, stimulus: Arrived, now: float) -> Lines:
    item = stimulus.item
    if not is_own(fleet, stimulus.node, item):
        return
    if isinstance(item, EventItem):
        known = fleet.ledger.events.get(item.event.id)
        if known is None or item.event.rev > known.rev:
            event = fleet.weighed(item.event)
            yield EventLine(at=now, subject=subject_of(event), device=event.device, event=event)
            yield from as_changed(fleet, item.event, event, now)
    elif isinstance(item, ClearedItem):
        yield from conditions.clear(fleet, item.cleared, now)
    elif isinstance(item, FenceItem):
        yield from holds.of_fence(fleet, item, now)
    elif isinstance(item, ActionItem):
        yield from actions.outcome(fleet, item, now)


def _asked(fleet: Fleet, stimulus: Asked, now: float) -> Lines:
    return operator.answer(fleet, stimulus, now)


def _reached(fleet: Fleet, stimulus: Reached, now: float) -> Lines:
    fleet.node(stimulus.of).observers[stimulus.by] = (stimulus.ok, now)
    if fleet.node_state(stimulus.of) != NodeState.LIVE:
        fleet.touch(Subject(node=stimulus.of))
        fleet.stirred = True
    return iter(())


def _managing(fleet: Fleet, stimulus: Managing, _now: float) -> Lines:
    if fleet.managers.hear(stimulus):
        fleet.touch_all()
        fleet.stirred = True
    return iter(())


def _managed(fleet: Fleet, stimulus: Managed, now: float) -> Lines:
    if fleet.managers.learn(stimulus, now) and stimulus.node in fleet.nodes:
        fleet.touch(Subject(node=stimulus.node))
        fleet.stirred = True
    return iter(())


_EARS: dict[type, Callable[[Fleet, Any, float], Lines]] = {
    Adopted: _adopted,
    Shaped: _shaped,
    Recalled: _recalled,
    Declared: _declared,
    NodeReported: _node_reported,
    Reported: _reported,
    Knocked: _knocked,
    Deaf: _deaf,
    Sampled: _sampled,
    Replicas: _replicas,
    Arrived: _arrived,
    Asked: _asked,
    Reached: _reached,
    Managing: _managing,
    Managed: _managed,
}
