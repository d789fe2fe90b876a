"""The first shape."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables, and the counters at their beginning."""
    _history()
    _arrivals()
    _orders()
    counters = op.create_table(
        "counters",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.Integer, nullable=False),
    )
    beginnings = {"seq": 0, "pruned": 0, "events": 0, "epoch": 1}
    op.bulk_insert(counters, [{"name": name, "value": value} for name, value in beginnings.items()])


def _history() -> None:
    op.create_table(
        "changes",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("gpu", sa.String),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("incident", sa.String),
        sa.Column("line", sa.Text, nullable=False),
    )
    op.create_index("changes_by_key", "changes", ["kind", "key", "seq"])
    op.create_index("changes_by_gpu", "changes", ["gpu", "seq"])
    op.create_index("changes_by_subject", "changes", ["subject", "seq"])
    op.create_index("changes_by_incident", "changes", ["incident", "seq"])
    op.create_index("changes_by_age", "changes", ["at"])
    op.create_table(
        "standing",
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("finished", sa.Boolean, nullable=False),
        sa.Column("line", sa.Text, nullable=False),
    )
    op.create_index("standing_by_seq", "standing", ["kind", "seq"])


def _arrivals() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("rev", sa.Integer, nullable=False),
        sa.Column("stored", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("node", sa.String, nullable=False),
        sa.Column("gpu", sa.String),
        sa.Column("code", sa.String, nullable=False),
        sa.Column("severity", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("events_by_stored", "events", ["stored"])
    op.create_index("events_by_gpu", "events", ["gpu", "stored"])
    op.create_index("events_by_node", "events", ["node", "stored"])
    op.create_index("events_by_age", "events", ["at"])
    op.create_table(
        "nodes",
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "addresses",
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "positions",
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
    )
    op.create_table(
        "received",
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("received_by_age", "received", ["at"])


def _orders() -> None:
    op.create_table(
        "desired",
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("act", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
    )
    op.create_index("audit_by_age", "audit", ["at"])


def downgrade() -> None:
    """Drop everything."""
    for table in (
        "audit",
        "desired",
        "received",
        "positions",
        "addresses",
        "nodes",
        "events",
        "standing",
        "changes",
        "counters",
    ):
        op.drop_table(table)
