"""What the store takes, beside the words of ``vocab``: one ``Write`` is one transaction."""

from collections.abc import Sequence

import msgspec

from controller.core.fleet.adoption import Adoption
from vocab.events import Event
from vocab.lines import AnyLine
from vocab.messages import Desired, NodeFacts


class Received(msgspec.Struct, frozen=True):
    """A spool record that arrived: the digest tells a repeat from a spool that began anew."""

    node: str
    position: int
    digest: str


class Position(msgspec.Struct, frozen=True):
    """How far a node's spool is on our disk, in this session of its agent."""

    node: str
    session: str
    position: int


class Addresses(msgspec.Struct, frozen=True):
    """Where the replicas of a node answer: gateways need it before a node has reported to a new controller."""

    node: str
    urls: dict[str, str]


class Audit(msgspec.Struct, frozen=True):
    """What a person or program ordered through the API, and what came of it."""

    at: float
    actor: str
    act: str
    subject: str
    reason: str
    outcome: str


class Answer(msgspec.Struct, frozen=True):
    """What came of an order that another controller posted."""

    id: int
    text: str


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction stores."""

    at: float
    lines: Sequence[AnyLine] = ()
    events: Sequence[Event] = ()
    facts: Sequence[NodeFacts] = ()
    inventories: Sequence[NodeFacts] | None = None  # what of it is on the nodes, where that is not all that they list
    received: Sequence[Received] = ()
    positions: Sequence[Position] = ()
    addresses: Sequence[Addresses] = ()
    desired: Sequence[Desired] = ()
    audits: Sequence[Audit] = ()
    adoptions: Sequence[Adoption] = ()
    epoch: int | None = None
    taken: Sequence[int] = ()  # rows of the inbox that this transaction has thought about
    answers: Sequence[Answer] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to store (a heartbeat without news)."""
        parts = (self.lines, self.events, self.facts, self.received, self.positions, self.addresses, self.desired)
        return self.epoch is None and not any((*parts, self.audits, self.adoptions, self.taken, self.answers))
