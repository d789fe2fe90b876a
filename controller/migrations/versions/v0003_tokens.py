"""Tokens, of which only the digests are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, empty."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("node", sa.String),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("made_by", sa.String, nullable=False),
        sa.Column("expires_at", sa.Float),
        sa.Column("used_at", sa.Float),
        sa.Column("revoked_at", sa.Float),
        sa.Column("changed", sa.Float, nullable=False),
    )
    op.create_index("tokens_by_change", "tokens", ["changed"])


def downgrade() -> None:
    """Forget all tokens."""
    op.drop_table("tokens")
