"""Restarts: a replica that is dead or stands still is started again on its own GPUs, in time and not too often.

When:   dead                at once, then after a back-off
        stalled             60 s without a step if its GPUs or a check speak against it too, else 120 s
        collective timeout  30 s, in which its processes should have ended by themselves
        wrong GPU           at once, once it can be spared
Where:  in place; a member on a GPU that is out of service is moved instead (a stop and a start). One restart of a
deployment at a time while processes live; none while a process of the last life still holds a GPU. What we did not
start is left to its owner.
"""

from collections.abc import Iterator

import msgspec

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.names import action_id
from controller.core.fleet.replicas import CRASH_LOOP, Life, Replica, is_on_bad_gpu
from controller.core.fleet.settings import START_TTL_S
from controller.core.policy import budget
from controller.core.policy.policy import Leave, may_act
from controller.core.replicas import owners, site_units
from controller.core.replicas.actions import draw, move, placed_anew
from vocab.events import Event, Recovery, Severity, epoch_s
from vocab.lines import ActionLine, Budget, ConditionLine, Subject
from vocab.states import ActionKind, ActionState, Health
from vocab.units import KIND

DIED, STALLED, COLLECTIVE, WRONG = "replica_died", "replica_stalled", "collective_timeout", "replica_wrong_gpu"
CODES = (DIED, COLLECTIVE, STALLED, WRONG)  # by urgency
UNCLEAN = "replica_failed_cleanup"
WITNESSED_S = 60.0  # without a step, with a second witness
UNWITNESSED_S = 120.0  # longer than the longest prefill, compilation or capture of a graph
GRACE_S = 30.0  # of a collective's own watchdog
BACKOFF_S = 10.0  # after the first restart that failed, doubled each time
TRIES = 3  # within WINDOW_S: more means that starting again does not help
WINDOW_S = 600.0
OURS = "corral"


class Decision(msgspec.Struct, frozen=True):
    """The state that a restart is in, and why."""

    state: ActionState
    why: str
    budget: Budget | None = None


def call(fleet: Fleet, now: float) -> Iterator[ActionLine]:
    """The restarts that are due, wait, or are not needed any more."""
    for replica in _of_interest(fleet):
        last = _last(fleet, replica)
        calling = _calling(fleet, replica)
        if calling is None or not _can_help(fleet, replica, now):
            if last is not None and last.state in {ActionState.WAITING, ActionState.WOULD}:
                yield move(last, ActionState.CANCELLED, "it is not needed any more", now)
        elif last is None or last.state not in STARTED:
            yield from _draw_up(fleet, replica, calling, last, now)


def _of_interest(fleet: Fleet) -> list[Replica]:
    """The replicas with an open condition, and those whose restart is not over."""
    ledger = fleet.ledger
    names = ledger.docket.replicas()
    names += [action.subject.replica or "" for action in ledger.live(ActionKind.RESTART_REPLICA)]
    found = (fleet.roster.living.get(name) for name in dict.fromkeys(names))
    return [replica for replica in found if replica is not None]


def is_under_way(fleet: Fleet, replica: Replica) -> bool:
    """Whether a restart of it waits or is under way, so that it will serve again where it is."""
    last = _last(fleet, replica)
    return last is not None and last.state in STARTED | {ActionState.WAITING}


def _last(fleet: Fleet, replica: Replica) -> ActionLine | None:
    tries = fleet.ledger.of_subject(replica.subject, ActionKind.RESTART_REPLICA)
    return tries[-1] if tries else None


def _calling(fleet: Fleet, replica: Replica) -> ConditionLine | None:
    """The condition that calls for a restart, the most urgent first."""
    standing = fleet.conditions_on(replica.subject)
    found = {c.code: c for c in standing if c.code == UNCLEAN or fleet.recovery(c) is Recovery.RESTART_APP}
    if UNCLEAN in found:
        return None
    return next((found[code] for code in CODES if code in found), None)


def _can_help(fleet: Fleet, replica: Replica, now: float) -> bool:
    """Whether a restart in place can help: it is to run, its GPUs are in service, it was not given up."""
    if fleet.life(replica) is not Life.RUN or is_on_bad_gpu(fleet.ledger, replica):
        return False
    if any(fleet.health(gpu) in {Health.FAILED, Health.LOST} for gpu in replica.gpus):
        return False
    if replica.is_group and (replica.is_dead or replica.torn):
        return False  # it is stopped as a whole, and another one starts
    if replica.is_dead and len(_tries(fleet, replica, now)) >= TRIES:
        return False
    start = fleet.ledger.actions.get(replica.start or "")
    if start is not None and start.state is not ActionState.DONE:
        return False  # its first start failed: the next one is made elsewhere
    status = replica.status
    given_up = status is not None and status.exit is not None and status.exit.reason == CRASH_LOOP
    looping = any(condition.code == CRASH_LOOP for condition in fleet.conditions_on(replica.subject))
    return not given_up and not looping


def _draw_up(
    fleet: Fleet, replica: Replica, calling: ConditionLine, last: ActionLine | None, now: float
) -> Iterator[ActionLine]:
    if last is not None and last.state in {ActionState.TIMED_OUT, ActionState.REFUSED}:
        return  # nobody carried it out: to order it again would not change that
    goes_on = last is not None and last.state in {ActionState.WAITING, ActionState.WOULD}
    nth = len(fleet.ledger.of_subject(replica.subject, ActionKind.RESTART_REPLICA)) - goes_on
    decision = _decide(fleet, replica, calling, now)
    if decision is None:
        return
    if decision.state is ActionState.ORDERED and not fleet.is_tick and not replica.is_dead:
        fleet.agenda.remind(now, replica.subject)  # its agent may tell at this moment of processes that are left
        return
    incidents = [key for event in calling.events for key in fleet.ledger.incidents_of_event.get(event, ())]
    drawn = draw(
        fleet,
        now,
        ActionKind.RESTART_REPLICA,
        action_id(ActionKind.RESTART_REPLICA, replica.id, nth),
        replica.subject,
        state=decision.state,
        incident=next((key for key in reversed(incidents) if key in fleet.ledger.open_incidents), None),
        rule=f"catalogue/{calling.code}",
        attempt=len(_tries(fleet, replica, now)) + 1,
        budget=decision.budget,
        ttl_s=START_TTL_S,
        why=decision.why,
    )
    line = placed_anew(fleet, drawn)
    if line is not None:
        yield line


def _decide(fleet: Fleet, replica: Replica, calling: ConditionLine, now: float) -> Decision | None:
    """What holds the restart back, first match; None: too early to say anything."""
    due = due_at(fleet, replica, calling, now)
    dead = replica.is_dead or calling.code == DIED
    if now < due:
        fleet.agenda.remind(due, replica.subject)
    if now < due and not dead:
        return None
    if calling.code == DIED and _awaits_its_agent(fleet, replica, calling):
        return None
    verdict = may_act(fleet, replica.node, ActionKind.RESTART_REPLICA, now, code=calling.code)
    if verdict.leave is Leave.LATER:
        return None
    if verdict.leave is Leave.WOULD:
        return Decision(ActionState.WOULD, verdict.why)
    return _when(fleet, replica, calling, due, now, dead=dead)


def _when(fleet: Fleet, replica: Replica, calling: ConditionLine, due: float, now: float, *, dead: bool) -> Decision:
    """What a restart that may be done waits for, first match."""
    owned_by = owner(fleet, replica)
    if owned_by != OURS and not (replica.observed and owners.kind_of(fleet, replica) == KIND):
        return Decision(ActionState.WAITING, f"it was not started by us: its owner ({owned_by}) must restart it")
    if owned_by != OURS:
        events = [fleet.ledger.events[key] for key in calling.events if key in fleet.ledger.events]
        witnessed = is_witnessed(fleet, replica, events)
        against = site_units.against_restart(fleet, replica, calling.code, witnessed=witnessed)
        if against is not None:
            return Decision(ActionState.WAITING, against)
    status = replica.status
    if status is not None and status.leftovers:
        pids = ", ".join(map(str, status.leftovers))
        return Decision(ActionState.WAITING, f"processes {pids} of its last life are still there")
    if len(_tries(fleet, replica, now)) >= TRIES:
        used = Budget(limit=TRIES, used=TRIES, of=f"restarts of it in {WINDOW_S:g} s")
        return Decision(ActionState.WAITING, "it was restarted often enough", used)
    if now < due:
        return Decision(ActionState.WAITING, f"back-off after a restart that failed: {due - now:.0f} s more")
    broken = None if dead else _one_at_a_time(fleet, replica)
    if calling.code == WRONG:
        broken = broken or budget.floor(fleet, replica)
    if broken is not None:
        return Decision(ActionState.WAITING, "another one comes first", broken)
    if status is not None and status.phase == "starting":
        return Decision(ActionState.RUNNING, f"{calling.code}: its agent starts it again by itself")
    return Decision(ActionState.ORDERED, _why(fleet, calling))


def owner(fleet: Fleet, replica: Replica) -> str:
    """Who may signal it: ``corral``, or who manages its deployment; what was found is never signalled by us."""
    deployment, status = fleet.deployments.get(replica.deployment), replica.status
    if replica.observed and status is not None and status.owner is not None:
        return str(status.owner)
    if deployment is not None and deployment.managed_by != OURS:
        return deployment.managed_by
    return "unknown" if replica.observed else OURS


def _awaits_its_agent(fleet: Fleet, replica: Replica, calling: ConditionLine) -> bool:
    """Whether its end is known from the event alone: its agent's next list says whether it starts it again itself."""
    events = [fleet.ledger.events[key] for key in calling.events if key in fleet.ledger.events]
    ended = bool(events) and events[-1].fields.get("exit") is not None
    status = replica.status
    return ended and status is not None and status.exit is None and status.phase != "stopped"


def due_at(fleet: Fleet, replica: Replica, calling: ConditionLine, now: float) -> float:
    """When the restart may be ordered, on the controller's clock."""
    events = [fleet.ledger.events[key] for key in calling.events if key in fleet.ledger.events]
    if not events:
        return now
    taken = fleet.ledger.first_taken_at.get(events[0].id, now)
    if calling.code == COLLECTIVE:
        return taken + GRACE_S
    if calling.code == STALLED:
        stood_s = _stood_s(events[0])
        return taken - stood_s + (WITNESSED_S if is_witnessed(fleet, replica, events) else UNWITNESSED_S)
    failed = [t for t in _tries(fleet, replica, now) if t.state is ActionState.FAILED]
    return failed[-1].at + BACKOFF_S * 2 ** (len(failed) - 1) if failed else taken


def _stood_s(event: Event) -> float:
    """How long it had not moved when that was said."""
    since = event.fields.get("still_since")
    if event.first_at is None or not isinstance(since, int | float):
        return 0.0
    return max(0.0, epoch_s(event.first_at) - since)


def is_witnessed(fleet: Fleet, replica: Replica, events: list[Event]) -> bool:
    """Whether something else speaks against a replica that stands still: a fault of its GPUs, or a failed check."""
    if any(event.cause is not None or event.fields.keys() & {"suspects", "witness"} for event in events):
        return True
    found = [condition for gpu in replica.gpus for condition in fleet.conditions_on(Subject(gpu=gpu))]
    found += fleet.conditions_on(replica.subject)
    return any(c.severity.rank >= Severity.ERROR.rank and c.code not in CODES for c in found)


def _tries(fleet: Fleet, replica: Replica, now: float) -> list[ActionLine]:
    """The restarts that were ordered within the window."""
    tries = fleet.ledger.of_subject(replica.subject, ActionKind.RESTART_REPLICA)
    ordered = fleet.ledger.ordered_at
    return [t for t in tries if ordered.get(t.id, t.at if t.state in STARTED else float("-inf")) > now - WINDOW_S]


def _one_at_a_time(fleet: Fleet, replica: Replica) -> Budget | None:
    """Restarts of living processes of the same deployment under way."""
    live = [a for a in fleet.ledger.live(ActionKind.RESTART_REPLICA) if a.state in STARTED]
    others = [r for a in live if (r := fleet.roster.find(a.subject.replica)) and r.deployment == replica.deployment]
    if not others:
        return None
    return Budget(limit=1, used=len(others), of=f"restarts of {replica.deployment} at one time")


def _why(fleet: Fleet, calling: ConditionLine) -> str:
    events = [fleet.ledger.events[key] for key in calling.events if key in fleet.ledger.events]
    return f"{calling.code}: {events[-1].text}" if events else calling.code
