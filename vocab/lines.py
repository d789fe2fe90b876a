"""Decision lines: what the control plane concluded, in causal order, one frozen type a kind.

The same lines are printed by ``corral replay``, stored by the controller, streamed by its API and folded
back into its state after a restart. ``at`` is seconds since the epoch.
"""

from typing import Any

import msgspec

from vocab.events import Event, Recovery, Severity
from vocab.states import ActionKind, ActionState, ClearsOn


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a line is about: exactly one field is set (none: the fleet)."""

    gpu: str | None = None
    node: str | None = None
    replica: str | None = None
    deployment: str | None = None
    link: str | None = None
    switch: str | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all lines."""

    at: float
    subject: Subject
    device: str | None = None


class EventLine(Line, frozen=True, kw_only=True, tag="event"):
    """An event was taken in, or grew."""

    event: Event


class ConditionLine(Line, frozen=True, kw_only=True, tag="condition"):
    """A standing state was opened, updated or cleared."""

    id: str
    code: str
    state: str
    severity: Severity
    since: float
    last_at: float
    reasons: tuple[str, ...] = ()
    clears_on: ClearsOn
    events: tuple[str, ...] = ()
    cleared_because: str | None = None  # if not by what it clears on


class Suspect(msgspec.Struct, frozen=True):
    """A GPU under suspicion."""

    gpu: str
    confidence: str


class IncidentLine(Line, frozen=True, kw_only=True, tag="incident"):
    """One fault's story was opened, updated or closed."""

    id: str
    state: str
    root: str
    code: str
    severity: Severity
    recovery: Recovery
    events: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    closed_because: str | None = None


class StateLine(Line, frozen=True, kw_only=True, tag="state"):
    """A GPU, replica or node changed its state. Of a replica that was found, not started, it says where it runs."""

    from_: str | None = msgspec.field(default=None, name="from")
    to: str
    why: str
    deployment: str | None = None
    target: "Target | None" = None
    observed: bool = False  # found, and not ours: never signalled


class Budget(msgspec.Struct, frozen=True):
    """What limited an action: ``used`` of ``limit``, of which rule."""

    limit: float
    used: float
    of: str


class HoldLine(Line, frozen=True, kw_only=True, tag="hold"):
    """A hold was placed, lifted, refused, or would have been; ``budget``: what had no room for it.

    ``rule``: the code whose rule holds it; ``until``: when it ends by itself (maintenance). ``since``: when it was
    placed, if this line only changes one that stands.
    """

    id: str
    op: str
    owner: str
    reason: str
    incident: str | None = None
    clears_on: ClearsOn
    budget: Budget | None = None
    rule: str | None = None
    until: float | None = None
    since: float | None = None

    @property
    def stands_since(self) -> float:
        """When it was placed, however often it was changed since."""
        return self.at if self.since is None else self.since


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a replica is to start: these GPUs, by rank, of ``node``.

    ``nodes``: of a group over several nodes the node of each GPU; the first leads it, and is ``node``.
    """

    node: str
    gpus: tuple[str, ...]
    nodes: tuple[str, ...] = ()

    @property
    def by_node(self) -> dict[str, tuple[str, ...]]:
        """Its GPUs by node, the leader's first."""
        found: dict[str, tuple[str, ...]] = {self.node: ()}
        for node, gpu in zip(self.nodes or (self.node,) * len(self.gpus), self.gpus, strict=True):
            found[node] = (*found.get(node, ()), gpu)
        return found


class ActionLine(Line, frozen=True, kw_only=True, tag="action"):
    """An action moved; ``token`` is "epoch.number", compared as numbers; ``deployment``: whose replica is started."""

    id: str
    of: ActionKind
    state: ActionState
    token: str
    incident: str | None = None
    rule: str
    policy: str
    attempt: int = 1
    budget: Budget | None = None
    target: Target | None = None
    disrupts: tuple[Subject, ...] = ()
    ttl_s: float | None = None
    covered_by: str | None = None
    deployment: str | None = None
    why: str


class NoteLine(Line, frozen=True, kw_only=True, tag="note"):
    """Something worth saying that changes no state; ``rule``: the code whose rule it is about; ``pool``: of a pause.

    ``incident`` and ``right``: what a person says of how Corral dealt with one.
    """

    code: str
    text: str
    rule: str | None = None
    incident: str | None = None
    right: bool | None = None
    pool: str | None = None


class FinalLine(Line, frozen=True, kw_only=True, tag="final"):
    """Where a subject stands at the end of a replay."""

    state: str
    holds: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    counts: dict[str, Any] = {}


AnyLine = EventLine | ConditionLine | IncidentLine | StateLine | HoldLine | ActionLine | NoteLine | FinalLine
