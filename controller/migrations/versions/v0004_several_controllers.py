"""Several controllers on one database: the lease, the inbox, sightings, and in which turn a row was written."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
FOLLOWED = ("nodes", "addresses", "desired")


def upgrade() -> None:
    """Create them; nobody holds the lease yet."""
    counters = sa.table("counters", sa.column("name", sa.String), sa.column("value", sa.BigInteger))
    op.bulk_insert(counters, [{"name": "turn", "value": 0}])
    for table in FOLLOWED:
        op.add_column(table, sa.Column("turn", NUMBER, nullable=False, server_default="0"))
    lease = op.create_table(
        "lease",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("term", NUMBER, nullable=False),
        sa.Column("renewed", sa.Float, nullable=False),
    )
    op.bulk_insert(lease, [{"name": "leader", "holder": "", "term": 0, "renewed": 0.0}])
    op.create_table(
        "inbox",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("key", sa.String, nullable=False, unique=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("failed", sa.Text),
    )
    op.create_table(
        "sightings",
        sa.Column("controller", sa.String, primary_key=True),
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    for table in ("sightings", "inbox", "lease"):
        op.drop_table(table)
    for table in FOLLOWED:
        with op.batch_alter_table(table) as altered:
            altered.drop_column("turn")
    op.execute("DELETE FROM counters WHERE name = 'turn'")
