"""Indexes for questions about events of a code and of a severity, the newest first."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create them; a million events take seconds."""
    op.create_index("events_by_code", "events", ["code", "stored"])
    op.create_index("events_by_severity", "events", ["severity", "stored"])


def downgrade() -> None:
    """Drop them: such questions read the whole history."""
    op.drop_index("events_by_severity", "events")
    op.drop_index("events_by_code", "events")
