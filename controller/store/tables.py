"""The tables, as SQLAlchemy sees them. The migrations create them; a test holds the two equal.

``changes`` is the history: every decision line with its ``seq``, in commit order. ``standing`` points at
the latest line of each thing, so that old history can be pruned and lists can be answered. Everything
else is what arrived: events, node facts, spool records, orders of people.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, Table, TypeDecorator
from sqlalchemy import String as PlainString
from sqlalchemy import Text as PlainText

metadata = MetaData()


class String(TypeDecorator[str]):
    """Characters as they come; a NUL, which PostgreSQL has no place for, becomes the replacement character."""

    impl = PlainString
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        """What is stored, and what is looked for."""
        return None if value is None else value.replace("\0", "\ufffd")


class Text(String):
    """As ``String``, for what is long."""

    impl = PlainText
    cache_ok = True


Number = BigInteger().with_variant(Integer(), "sqlite")  # grows without end: positions, generations, seq

counters = Table(
    "counters",
    metadata,
    Column("name", String, primary_key=True),  # seq, turn, pruned, rolled, events, epoch: see store.read.counter
    Column("value", Number, nullable=False),
)

changes = Table(
    "changes",
    metadata,
    Column("seq", Number, primary_key=True),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("key", String, nullable=False),  # the id of the event, condition, incident, hold or action; else the subject
    Column("gpu", String),
    Column("subject", String, nullable=False),  # gpu:UUID, node:NAME, replica:ID, ...; "" is the fleet
    Column("incident", String),
    Column("line", Text, nullable=False),
    Index("changes_by_key", "kind", "key", "seq"),
    Index("changes_by_gpu", "gpu", "seq"),
    Index("changes_by_subject", "subject", "seq"),
    Index("changes_by_incident", "incident", "seq"),
    Index("changes_by_age", "at"),
)

standing = Table(
    "standing",
    metadata,
    Column("kind", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("seq", Number, nullable=False),
    Column("finished", Boolean, nullable=False),  # cleared, closed, lifted or terminal: may be pruned when old
    Column("line", Text, nullable=False),
    Index("standing_by_seq", "kind", "seq"),
)

events = Table(
    "events",
    metadata,
    Column("id", String, primary_key=True),
    Column("rev", Number, nullable=False),
    Column("stored", Number, nullable=False),  # the seq counter when it was first stored: the order of lists
    Column("at", Float, nullable=False),
    Column("node", String, nullable=False),
    Column("gpu", String),
    Column("code", String, nullable=False),
    Column("severity", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Index("events_by_stored", "stored"),
    Index("events_by_gpu", "gpu", "stored"),
    Index("events_by_node", "node", "stored"),
    Index("events_by_code", "code", "stored"),
    Index("events_by_severity", "severity", "stored"),
    Index("events_by_age", "at"),
)

nodes = Table(
    "nodes",
    metadata,
    Column("node", String, primary_key=True),
    Column("at", Float, nullable=False),
    Column("body", Text, nullable=False),
    Column("turn", Number, nullable=False, server_default="0"),  # in which it was written: followers read by it
)

addresses = Table(
    "addresses",
    metadata,
    Column("node", String, primary_key=True),
    Column("body", Text, nullable=False),  # replica -> url, as the node last listed them
    Column("turn", Number, nullable=False, server_default="0"),  # in which it was written: followers read by it
)

positions = Table(
    "positions",
    metadata,
    Column("node", String, primary_key=True),
    Column("session", String, nullable=False),
    Column("position", Number, nullable=False),
)

received = Table(
    "received",
    metadata,
    Column("node", String, primary_key=True),
    Column("position", Number, primary_key=True),
    Column("digest", String, nullable=False),  # a repeat has the same; a spool that began anew has another
    Column("at", Float, nullable=False),
    Index("received_by_age", "at"),
)

desired = Table(
    "desired",
    metadata,
    Column("node", String, primary_key=True),
    Column("generation", Number, nullable=False),
    Column("body", Text, nullable=False),
    Column("turn", Number, nullable=False, server_default="0"),  # in which it was written: followers read by it
)

audit = Table(
    "audit",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("actor", String, nullable=False),
    Column("act", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Index("audit_by_age", "at"),
)

policies = Table(
    "policies",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("version", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("actor", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("content", Text, nullable=False),  # the file; empty for the built-in policy alone
    Column("settings", Text, nullable=False),
    Column("pinned", Text, nullable=False),  # each code's rule as the catalogue had it
    Column("reverts", Number),
    Index("policies_by_version", "version"),
)

cards = Table(
    "cards",
    metadata,
    Column("uuid", String, primary_key=True),
    Column("serial", String),  # of the board, which may have several GPUs; null where it says none
    Column("board", String),  # its product name
    Column("first", Float, nullable=False),  # when it was first seen
    Column("node", String, nullable=False),  # of its last stay, as all that follows
    Column("pci", String, nullable=False),
    Column("since", Float, nullable=False),
    Column("until", Float),  # null: it is there
    Index("cards_by_serial", "serial"),
    Index("cards_by_node", "node"),
    Index("cards_by_board", "board"),
)

stays = Table(
    "stays",
    metadata,
    Column("uuid", String, primary_key=True),
    Column("since", Float, primary_key=True),
    Column("node", String, nullable=False),
    Column("pci", String, nullable=False),
    Column("until", Float),
)

rollups = Table(
    "rollups",
    metadata,
    Column("span", Number, primary_key=True, autoincrement=False),  # seconds: of an hour or of a day
    Column("start", Number, primary_key=True, autoincrement=False),  # seconds since the epoch, UTC
    Column("gpu", String, primary_key=True),  # empty: of no one GPU
    Column("deployment", String, primary_key=True),  # empty: of none
    Column("measure", String, primary_key=True),  # see store.rollup
    Column("name", String, primary_key=True),
    Column("value", Float, nullable=False),
    Index("rollups_by_gpu", "gpu", "span", "start"),
    Index("rollups_by_deployment", "deployment", "span", "start"),
)

rolling = Table(
    "rolling",
    metadata,
    Column("subject", String, primary_key=True),  # gpu:UUID or replica:ID, as far as its changes are rolled up
    Column("state", String, nullable=False),
    Column("since", Float, nullable=False),  # from when on its time in this state is not in the rollups yet
    Column("booked", Boolean, nullable=False),  # whether its time in this state counts
    Column("deployment", String, nullable=False),  # of a replica
    Column("guest", String, nullable=False),  # of a GPU: the replica that was last started there
    Index("rolling_by_since", "booked", "since"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("role", String, nullable=False),
    Column("node", String),  # the only one that its bearer may speak for
    Column("digest", String, nullable=False),  # SHA-256 of the secret, which is nowhere
    Column("made_at", Float, nullable=False),
    Column("made_by", String, nullable=False),
    Column("expires_at", Float),
    Column("used_at", Float),  # when a one-time token was traded
    Column("revoked_at", Float),
    Column("changed", Float, nullable=False),
    Index("tokens_by_change", "changed"),
)

# -- of several controllers on one database (store.shared) ------------------------------------------------

lease = Table(
    "lease",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),  # the controller that decides
    Column("term", Number, nullable=False),  # rises with each new holder; every transaction of a decision checks it
    Column("renewed", Float, nullable=False),  # by the database's clock
)

inbox = Table(
    "inbox",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    Column("key", String, nullable=False, unique=True),  # by which whoever posted it finds the answer
    Column("at", Float, nullable=False),  # by the database's clock
    Column("body", Text, nullable=False),
    Column("answer", Text),  # the lines that an order led to; a batch is deleted instead
    Column("failed", Text),  # why it could not be thought about: kept for a person to look at
)

sightings = Table(
    "sightings",
    metadata,
    Column("controller", String, primary_key=True),
    Column("number", Number, primary_key=True),
    Column("at", Float, nullable=False),  # by the database's clock
    Column("body", Text, nullable=False),
)
