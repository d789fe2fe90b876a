"""Conditions: standing states, opened by events and ended by the signal's return, a reset, a reboot or a person.

One condition a subject, code and device is open at a time; further events grow it and never move its
``since``. An event that was taken in by a condition that has ended opens another only if it grew since.
The first condition of a fault gathers the codes of those that join it: a subject is bad since the first of them.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.names import condition_id
from controller.core.policy.policy import counts, subject_of
from vocab.events import Cleared, Event, epoch_s
from vocab.lines import ConditionLine, Subject


def judge(fleet: Fleet, event: Event, now: float) -> Iterator[ConditionLine]:
    """The line that an event asks for, if any: it opens a condition or grows one."""
    if not counts(fleet, event):
        return
    ledger = fleet.ledger
    subject = subject_of(event)
    key = ledger.open_conditions.get((subject, event.code, event.device))
    if key is not None:
        yield from _grow(ledger.conditions[key], event, now)
        return
    before = ledger.conditions_of_event.get(event.id, [])
    if ledger.is_new(event, before):
        yield _open(fleet, event, subject, condition_id(event.id, len(before)), now)


def gather(fleet: Fleet, event: Event, now: float) -> Iterator[ConditionLine]:
    """What has joined a fault that stands already is one more reason of the condition that it began with."""
    ledger = fleet.ledger
    stories = [key for key in ledger.incidents_of_event.get(event.id, ()) if key in ledger.open_incidents]
    if not stories:
        return
    subject = subject_of(event)
    mine = ledger.open_conditions.get((subject, event.code, event.device))
    if mine is None:
        return
    told = ledger.incidents[stories[0]].events
    found = [one for one in fleet.conditions_on(subject) if any(each in told for each in one.events)]
    first = min(found, key=lambda one: one.since, default=None)
    if first is not None and first.id != mine and event.code not in first.reasons:
        last_at = max(first.last_at, ledger.conditions[mine].last_at)
        yield replace(first, at=now, state="updated", reasons=(*first.reasons, event.code), last_at=last_at)


def _open(fleet: Fleet, event: Event, subject: Subject, key: str, now: float) -> ConditionLine:
    return ConditionLine(
        at=now,
        subject=subject,
        device=event.device,
        id=key,
        code=event.code,
        state="open",
        severity=event.severity,
        since=_seconds(event.first_at or event.at, now),
        last_at=_seconds(event.last_at or event.at, now),
        reasons=(event.code,),
        clears_on=fleet.row(event.code).clears_on,
        events=(event.id,),
    )


def _grow(known: ConditionLine, event: Event, now: float) -> Iterator[ConditionLine]:
    grown = replace(
        known,
        severity=max(known.severity, event.severity, key=lambda severity: severity.rank),
        last_at=max(known.last_at, _seconds(event.last_at or event.at, known.last_at)),
        events=known.events if event.id in known.events else (*known.events, event.id),
    )
    if grown != known:
        yield replace(grown, at=now, state="updated")


def _seconds(stamp: str | None, otherwise: float) -> float:
    return otherwise if stamp is None else epoch_s(stamp)


def clear(fleet: Fleet, cleared: Cleared, now: float) -> Iterator[ConditionLine]:
    """End what a node says is over. A message older than the condition's last sign is out of date."""
    for condition in _meant(fleet, cleared):
        if epoch_s(cleared.at) >= condition.last_at:
            yield end(condition, now)


def _meant(fleet: Fleet, cleared: Cleared) -> list[ConditionLine]:
    """The open conditions that the message is about: by the event that it names, else by subject and code."""
    ledger = fleet.ledger
    keys = ledger.conditions_of_event.get(cleared.event or "", [])
    found = [ledger.conditions[key] for key in keys if ledger.conditions[key].state != "cleared"]
    if found:
        return found
    subject = Subject(gpu=cleared.gpu) if cleared.gpu else Subject(node=cleared.node)
    key = ledger.open_conditions.get((subject, cleared.code, cleared.device))
    return [ledger.conditions[key]] if key is not None and cleared.name is None else []


def end(condition: ConditionLine, now: float) -> ConditionLine:
    """The line that ends a condition."""
    return replace(condition, at=now, state="cleared")


def over_by_reboot(fleet: Fleet, now: float) -> Iterator[ConditionLine]:
    """End what a reboot ends, where the node's boot is another than that of all the condition's events."""
    if not fleet.work.booted:
        return
    for key in fleet.ledger.docket.ended_by_boot():
        condition = fleet.ledger.conditions[key]
        gpu = fleet.gpus.get(condition.subject.gpu or "")
        if gpu is not None and not gpu.listed:
            continue  # the reboot has not brought it back
        if _is_of_earlier_boot(fleet, condition):
            yield end(condition, now)


def over_by_end(fleet: Fleet, now: float) -> Iterator[ConditionLine]:
    """End the conditions of replicas that have ended: nobody is left who could report them good."""
    for name in [name for name in fleet.work.replicas if name in fleet.roster.departed]:
        for condition in fleet.conditions_on(Subject(replica=name)):
            yield end(condition, now)


def _is_of_earlier_boot(fleet: Fleet, condition: ConditionLine) -> bool:
    events = [fleet.ledger.events[key] for key in condition.events if key in fleet.ledger.events]
    for event in events:
        facts = fleet.node(event.node).facts
        if facts is None or event.boot_id is None or facts.boot_id == event.boot_id:
            return False
    return bool(events)
