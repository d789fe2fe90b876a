"""The ledger of cards: which there are and where each has been. It begins empty and fills as nodes report."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "cards",
        sa.Column("uuid", sa.String, primary_key=True),
        sa.Column("serial", sa.String),
        sa.Column("board", sa.String),
        sa.Column("first", sa.Float, nullable=False),
        sa.Column("node", sa.String, nullable=False),
        sa.Column("pci", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("until", sa.Float),
    )
    for column in ("serial", "node", "board"):
        op.create_index(f"cards_by_{column}", "cards", [column])
    op.create_table(
        "stays",
        sa.Column("uuid", sa.String, primary_key=True),
        sa.Column("since", sa.Float, primary_key=True),
        sa.Column("node", sa.String, nullable=False),
        sa.Column("pci", sa.String, nullable=False),
        sa.Column("until", sa.Float),
    )


def downgrade() -> None:
    """Forget the ledger."""
    op.drop_table("stays")
    op.drop_table("cards")
