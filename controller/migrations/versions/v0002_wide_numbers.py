"""Numbers that grow without end take eight bytes on PostgreSQL too; on SQLite every integer does."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

WIDE = (
    ("counters", "value"),
    ("changes", "seq"),
    ("standing", "seq"),
    ("events", "rev"),
    ("events", "stored"),
    ("positions", "position"),
    ("received", "position"),
    ("desired", "generation"),
    ("audit", "id"),
)


def upgrade() -> None:
    """Widen them."""
    _alter(sa.BigInteger())


def downgrade() -> None:
    """Narrow them again; fails if a number needs eight bytes."""
    _alter(sa.Integer())


def _alter(kind: sa.types.TypeEngine[int]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table, column in WIDE:
            op.alter_column(table, column, type_=kind, existing_nullable=False)
