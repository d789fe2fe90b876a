"""The ledger: what the decision lines add up to. ``fold`` is the only way in, at work and after a restart.

It keeps the latest line of each thing under its id. Nothing in it was heard from a node: that is the
``Fleet``'s. Since every decision is folded the moment it is taken, a core that folds the stored lines knows
exactly what the one before it knew.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

import msgspec

from controller.core.fleet.docket import Docket
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.names import token_order
from controller.core.fleet.pauses import Pauses
from vocab.events import Event, Severity
from vocab.lines import (
    ActionLine,
    AnyLine,
    ConditionLine,
    EventLine,
    HoldLine,
    IncidentLine,
    NoteLine,
    StateLine,
    Subject,
    Target,
)
from vocab.states import TERMINAL_ACTIONS, ActionKind, ActionState, ClearsOn, NodeState

LEAVING = {"gpu_replaced": "replaced", "gpu_removed": "removed"}  # events of a GPU that was taken away on purpose
COUNTED = frozenset({"replica_died", *LEAVING})  # events that the ledger itself takes something from
FLEET = Subject()
TOO_MUCH = "too_much_sick"  # the doubt about the whole fleet, or about a silent domain
BY_REPAIR = frozenset({ClearsOn.RESET, ClearsOn.REBOOT})
POLICY = "policy"  # the owner of what is held for a fault
ENDING = frozenset({ActionKind.DRAIN, ActionKind.STOP_REPLICA})
ADOPTED = "policy_adopted"  # the note of a policy that came into force
AGENT = "agent:"  # the owner of a hold that an agent placed begins with it
MANAGER = "manager/"  # the rule of what is asked of a manager of nodes begins with it


class FailedStart(msgspec.Struct, frozen=True):
    """A replica that died before it was ever ready. ``said``: how its end was told."""

    at: float
    node: str
    replica: str
    deployment: str
    gpus: tuple[str, ...]
    said: str
    event: str


LOOSE_S = 3600.0  # an event that led to nothing is forgotten after so long: nobody asks for it but who sends it again
MOST_FAILED = 512  # an hour of a node that fails every seven seconds


class Ledger:
    """All lines, folded. The dictionaries are for reading; ``fold`` alone writes them."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.first_taken_at: dict[str, float] = {}  # when an event first came in
        self.taken_at: dict[str, float] = {}  # when its last revision did
        self._loose: deque[tuple[float, str]] = deque()  # events that may have led to nothing, in order
        self.unexamined: dict[str, None] = {}  # events that no rule has looked at in this life, in order
        self.failed_starts: deque[FailedStart] = deque(maxlen=MOST_FAILED)
        self.started_at: dict[Subject, float] = {}  # when a replica last became ready there, by node and GPU
        self.suspected: dict[str, dict[str, float]] = defaultdict(dict)  # GPU -> incident -> when
        self.conditions: dict[str, ConditionLine] = {}
        self.open_conditions: dict[tuple[Subject, str, str | None], str] = {}
        self.conditions_of_event: dict[str, list[str]] = defaultdict(list)
        self.conditions_of: dict[Subject, dict[str, None]] = defaultdict(dict)  # open ones
        self.docket = Docket()
        self.incidents: dict[str, IncidentLine] = {}
        self.open_incidents: dict[str, int] = {}  # with a number that tells which was opened first
        self.began_at: dict[str, float] = {}  # the open ones: when they were opened, however they have grown since
        self.incidents_of_event: dict[str, list[str]] = defaultdict(list)
        self.incidents_of: dict[Subject, dict[str, None]] = defaultdict(dict)  # open ones
        self.repaired: dict[tuple[Subject, str], list[str]] = defaultdict(list)  # by subject and code: ended conditions
        self.healthy_at: dict[Subject, float] = {}  # when a person last called it healthy
        self.ended: dict[str, dict[str, int]] = {}  # condition or incident -> revision of each event when it ended
        self.holds: dict[str, HoldLine] = {}  # standing
        self.holds_of: dict[Subject, dict[str, None]] = defaultdict(dict)
        self.fences: dict[str, None] = {}  # the holds that agents placed
        self.timed: dict[str, None] = {}  # standing holds that end by themselves
        self.held: set[str] = set()  # GPUs and nodes on which a hold of the policy stands
        self.lifted: dict[str, HoldLine] = {}
        self.would_holds: dict[str, HoldLine] = {}
        self.would_of: dict[str | None, dict[str, None]] = defaultdict(dict)  # by incident
        self.holds_of_rule: dict[str, dict[str, HoldLine]] = defaultdict(dict)  # by code: what it held or would have
        self.recorded = 0  # rises with all that the record of a rule rests on
        self.verdicts: dict[str, bool] = {}  # incident -> whether Corral was right, in the eyes of people
        self.taken_back: set[str] = set()  # events that have led to what a person has undone: they hold nothing again
        self.forced: set[str] = set()  # holds of the policy that somebody lifted while their incident was open
        self.refused_holds: dict[str, None] = {}
        self.actions: dict[str, ActionLine] = {}
        self.live_actions: dict[ActionKind, dict[str, None]] = defaultdict(dict)
        self.started: dict[str, None] = {}  # ordered and not ended
        self.units_down: dict[str, str] = {}  # replica -> the drain by which its unit was stopped for a hold
        self.closings: dict[tuple[str, Subject], str] = {}  # by manager and place: what was last asked; none if open
        self.actions_of: dict[Subject, list[str]] = defaultdict(list)
        self.actions_of_incident: dict[str, list[str]] = defaultdict(list)
        self.starts_of: dict[str, list[str]] = defaultdict(list)  # by deployment
        self.ordered_at: dict[str, float] = {}  # the first order of an action
        self.left: dict[str, str] = {}  # GPU -> why it is gone on purpose: replaced, removed
        self.left_ill: dict[str, str] = {}  # GPU -> the incident that was open when it left
        self.told_to_go: set[str] = set()  # replicas for which there was ever a drain or a stop
        self.marked: dict[str, set[str]] = {"gpu": set(), "node": set()}  # those that are not clear, by name
        self.words: dict[Subject, str] = {}
        self.lost: set[str] = set()  # nodes
        self.pauses = Pauses()
        self.handed_over: dict[str, str] = {}  # open incidents that were left to a person, and why
        self.demoted: dict[str, NoteLine] = {}  # rules that have fallen back to shadow, by code
        self.discarded_at = float("-inf")  # when a person last discarded what waited
        self.trusted_at = float("-inf")  # since when the count of what demotes a rule runs
        self.notes: set[tuple[Subject, str, str]] = set()
        self.number = 0  # of the last token
        self.epoch = 0

    def fold(self, line: AnyLine) -> None:
        """Take one line in."""
        if isinstance(line, EventLine):  # most lines are one
            self._fold_event(line)
            return
        if isinstance(line, ConditionLine):
            self._fold_condition(line)
        elif isinstance(line, IncidentLine):
            self._fold_incident(line)
        elif isinstance(line, StateLine):
            self._fold_state(line)
        elif isinstance(line, HoldLine):
            self._fold_hold(line)
        elif isinstance(line, ActionLine):
            self._fold_action(line)
        elif isinstance(line, NoteLine):
            self._fold_note(line)
        if isinstance(line, ConditionLine | IncidentLine | HoldLine):
            self._mark(line.subject)

    def _mark(self, subject: Subject) -> None:
        kind, name = ("gpu", subject.gpu) if subject.gpu is not None else ("node", subject.node)
        if name is not None:
            (self.marked[kind].discard if self.is_clear(subject) else self.marked[kind].add)(name)

    def _fold_state(self, line: StateLine) -> None:
        self.words[line.subject] = line.to
        if line.subject.node is not None:
            (self.lost.add if line.to == NodeState.LOST else self.lost.discard)(line.subject.node)

    def _fold_event(self, line: EventLine) -> None:
        if line.event.code in LEAVING and line.event.gpu is not None:
            self.left[line.event.gpu] = LEAVING[line.event.code]
        if line.event.id not in self.events and line.event.code == "replica_died":
            self._fold_death(line.event, line.at)
        self.events[line.event.id] = line.event
        self.first_taken_at.setdefault(line.event.id, line.at)
        self.taken_at[line.event.id] = line.at
        if line.event.code not in COUNTED:
            self._loose.append((line.at, line.event.id))
        self.unexamined[line.event.id] = None

    def _fold_death(self, event: Event, at: float) -> None:
        if event.fields.get("was_ready") is not False:
            return
        self.failed_starts.append(
            FailedStart(
                at=at,
                node=event.node,
                replica=str(event.fields.get("replica")),
                deployment=str(event.fields.get("deployment") or ""),
                gpus=tuple(event.fields.get("gpus", ())),
                said=str(event.fields.get("said") or event.text),
                event=event.id,
            )
        )

    def _fold_condition(self, line: ConditionLine) -> None:
        known = self.conditions.get(line.id)
        self.conditions[line.id] = line
        for event in line.events[len(known.events) if known else 0 :]:
            self.conditions_of_event[event].append(line.id)
        key = (line.subject, line.code, line.device)
        if line.state == "cleared":
            self.ended[line.id] = self._revisions(line.events)
            if line.clears_on in BY_REPAIR and line.severity.rank >= Severity.ERROR.rank:
                self.repaired[line.subject, line.code].append(line.id)
            self.conditions_of[line.subject].pop(line.id, None)
            if self.open_conditions.get(key) == line.id:
                del self.open_conditions[key]
                self.docket.ended(key)
        else:
            self.open_conditions[key] = line.id
            self.docket.opened(key, line)
            self.conditions_of[line.subject][line.id] = None

    def _fold_incident(self, line: IncidentLine) -> None:
        known = self.incidents.get(line.id)
        self.incidents[line.id] = line
        self.docket.fold_incident(line)
        for suspect in line.suspects:
            if suspect.confidence != "low":
                self.suspected[suspect.gpu].setdefault(line.id, line.at)
        for event in line.events[len(known.events) if known else 0 :]:
            self.incidents_of_event[event].append(line.id)
        if line.state == "closed":
            self.ended[line.id] = self._revisions(line.events)
            if line.closed_because in LEAVING.values() and line.subject.gpu is not None:
                self.left_ill[line.subject.gpu] = line.id
            self.open_incidents.pop(line.id, None)
            self.began_at.pop(line.id, None)
            self.incidents_of[line.subject].pop(line.id, None)
            self.handed_over.pop(line.id, None)
            for key in self.would_of.pop(line.id, ()):
                self.would_holds.pop(key, None)
        else:
            self.open_incidents.setdefault(line.id, len(self.incidents))
            self.began_at.setdefault(line.id, line.at)
            self.incidents_of[line.subject][line.id] = None

    def _revisions(self, events: tuple[str, ...]) -> dict[str, int]:
        return {event: self.events[event].rev for event in events if event in self.events}

    def _fold_hold(self, line: HoldLine) -> None:
        self._take_hold(line)
        if line.owner == POLICY and (name := line.subject.gpu or line.subject.node) is not None:
            (self.held.add if self.standing(line.subject, POLICY) else self.held.discard)(name)

    def _take_hold(self, line: HoldLine) -> None:
        self.recorded += 1
        incident = self.incidents.get(line.incident or "")
        if incident is not None and line.op in {"placed", "would_place"}:
            of_rule = self.holds_of_rule[line.rule or incident.code]
            of_rule.pop(line.id, None)  # in the order of their times: whoever looks at the last hour reads no more
            of_rule[line.id] = line
        if line.op == "placed":
            self.holds[line.id] = line
            self.holds_of[line.subject][line.id] = None
            would = self.would_holds.pop(line.id, None)
            if would is not None:
                self.would_of[would.incident].pop(line.id, None)
            if line.owner.startswith(AGENT):
                self.fences[line.id] = None
            if line.until is not None:
                self.timed[line.id] = None
        elif line.op == "lifted":
            self.lifted[line.id] = line
            if incident is not None and incident.id in self.open_incidents:
                self.forced.add(line.id)
            self.holds.pop(line.id, None)
            self.fences.pop(line.id, None)
            self.timed.pop(line.id, None)
            self.holds_of[line.subject].pop(line.id, None)
        elif line.op == "would_place":
            self.would_holds[line.id] = line
            self.would_of[line.incident][line.id] = None
        elif line.op == "refused":
            self.refused_holds[line.id] = None

    def _fold_action(self, line: ActionLine) -> None:
        if line.id not in self.actions:
            self.actions_of[line.subject].append(line.id)
            if line.of in ENDING and line.subject.replica is not None:
                self.told_to_go.add(line.subject.replica)
            if line.incident is not None:
                self.actions_of_incident[line.incident].append(line.id)
            if line.of is ActionKind.START_REPLICA and line.deployment is not None:
                self.starts_of[line.deployment].append(line.id)
        self.actions[line.id] = line
        self.epoch, self.number = max((self.epoch, self.number), token_order(line.token))
        if line.state is ActionState.ORDERED:
            self.ordered_at.setdefault(line.id, line.at)
        if line.state in TERMINAL_ACTIONS:
            self.live_actions[line.of].pop(line.id, None)
        else:
            self.live_actions[line.of][line.id] = None
        if line.state in STARTED:
            self.started[line.id] = None
        else:
            self.started.pop(line.id, None)
        if line.rule.startswith(MANAGER):
            self._fold_closing(line)
        if line.target is not None and line.subject.replica is not None:
            self._fold_unit(line.subject.replica, line.target, line)

    def _fold_unit(self, replica: str, target: Target, line: ActionLine) -> None:
        """What a unit of the site runs is stopped by a drain and started by a release; without a hold, by a person."""
        if line.of is ActionKind.DRAIN and line.state in STARTED:
            places = (Subject(node=target.node), *(Subject(gpu=gpu) for gpu in target.gpus))
            if any(self.holds_of.get(place) for place in places):
                self.units_down[replica] = line.id
        elif line.of is ActionKind.RELEASE and line.state in TERMINAL_ACTIONS - {ActionState.CANCELLED}:
            self.units_down.pop(replica, None)

    def _fold_closing(self, line: ActionLine) -> None:
        key = (line.rule.removeprefix(MANAGER), line.subject)
        never = line.state in TERMINAL_ACTIONS and line.id not in self.ordered_at
        if line.state is ActionState.DONE if line.of is ActionKind.RELEASE else never:
            self.closings.pop(key, None)
        else:
            self.closings[key] = line.id

    def _fold_note(self, line: NoteLine) -> None:
        self.notes.add((line.subject, line.code, line.text))
        if line.code in {"paused", "resumed"}:
            self.pauses.fold(line)
        elif line.code == "needs_person":
            incident, _, why = line.text.partition(": ")
            if incident in self.open_incidents:
                self.handed_over[incident] = why
        elif line.code == "undone" and line.incident in self.incidents:
            self._fold_undone(line.incident, line)
        elif line.code == "rule_demoted" and line.rule is not None:
            self.demoted[line.rule] = line
        elif line.code == "set_healthy":
            self.healthy_at[line.subject] = line.at
        elif line.code == "verdict" and line.incident is not None and line.right is not None:
            self.verdicts[line.incident] = line.right
            self.recorded += 1
        elif line.code == "backlog_discarded":
            self.discarded_at = line.at
            self._trust(line.at)
        elif line.code == ADOPTED:
            self._trust(line.at)

    def _trust(self, at: float) -> None:
        """A person has looked at the rules: all of them act, and their counts begin anew."""
        self.trusted_at = at
        self.demoted.clear()

    def _fold_undone(self, incident: str, line: NoteLine) -> None:
        self.taken_back.update(self.incidents[incident].events)
        self.would_holds = {key: hold for key, hold in self.would_holds.items() if hold.incident != incident}
        if incident in self.open_incidents:
            self.handed_over[incident] = line.text.partition(": ")[2]

    def is_taken_back(self, events: Sequence[str]) -> bool:
        """Whether all of this evidence belongs to what a person has undone."""
        return bool(events) and self.taken_back.issuperset(events)

    def forget(self, now: float) -> None:
        """Let go of the events on which nothing rests: history is the store's, and this is kept small."""
        while self._loose and self._loose[0][0] < now - LOOSE_S:
            _, key = self._loose.popleft()
            rests = self.conditions_of_event.get(key) or self.incidents_of_event.get(key) or key in self.unexamined
            if not rests and self.taken_at.get(key, now) < now - LOOSE_S:
                del self.events[key], self.first_taken_at[key], self.taken_at[key]

    def take_unexamined(self) -> list[str]:
        """The events that no rule has looked at yet, once; after a restart all of them: looking twice is harmless."""
        found = list(self.unexamined)
        self.unexamined.clear()
        return found

    def live(self, *kinds: ActionKind) -> list[ActionLine]:
        """Actions of these kinds (none named: of all) that have not ended, each kind oldest first."""
        return [self.actions[key] for kind in kinds or ActionKind for key in self.live_actions[kind]]

    def of_subject(self, subject: Subject, *kinds: ActionKind) -> list[ActionLine]:
        """All actions of these kinds on a subject, oldest first."""
        return [self.actions[key] for key in self.actions_of.get(subject, ()) if self.actions[key].of in kinds]

    def of_incident(self, incident: str, *kinds: ActionKind) -> list[ActionLine]:
        """All actions of these kinds for an incident, oldest first."""
        keys = self.actions_of_incident.get(incident, ())
        return [self.actions[key] for key in keys if self.actions[key].of in kinds]

    def standing(self, subject: Subject, owner: str | None = None) -> list[HoldLine]:
        """The holds that stand on a subject (of one owner)."""
        keys = self.holds_of.get(subject)
        if not keys:
            return []
        found = [self.holds[key] for key in keys]
        return found if owner is None else [hold for hold in found if hold.owner == owner]

    def is_clear(self, subject: Subject) -> bool:
        """Whether nothing stands on it: no condition, no hold, no incident."""
        return not (self.conditions_of.get(subject) or self.holds_of.get(subject) or self.incidents_of.get(subject))

    def evidence_at(self, incident: IncidentLine) -> float:
        """When the last revision of any of its events came in."""
        return max((self.taken_at.get(event, 0.0) for event in incident.events), default=0.0)

    def is_new(self, event: Event, ended: list[str]) -> bool:
        """Whether the event has grown since the conditions or incidents ``ended`` that took it in ended."""
        return not ended or all(event.rev > self.ended.get(key, {}).get(event.id, -1) for key in ended)
