"""The policies that were adopted."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, empty: the next start adopts what is configured."""
    op.create_table(
        "policies",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
        sa.Column("version", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("pinned", sa.Text, nullable=False),
        sa.Column("reverts", sa.BigInteger().with_variant(sa.Integer, "sqlite")),
    )
    op.create_index("policies_by_version", "policies", ["version"])


def downgrade() -> None:
    """Forget all adoptions: the next start adopts what is configured."""
    op.drop_table("policies")
