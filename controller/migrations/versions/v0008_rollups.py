"""Hours and days of GPUs and deployments. They begin with the oldest change that is still stored."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables; the first runs of the job fill them."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "rollups",
        sa.Column("span", number, primary_key=True, autoincrement=False),
        sa.Column("start", number, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.String, primary_key=True) for name in ("gpu", "deployment", "measure", "name")),
        sa.Column("value", sa.Float, nullable=False),
    )
    op.create_index("rollups_by_gpu", "rollups", ["gpu", "span", "start"])
    op.create_index("rollups_by_deployment", "rollups", ["deployment", "span", "start"])
    op.create_table(
        "rolling",
        sa.Column("subject", sa.String, primary_key=True),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("booked", sa.Boolean, nullable=False),
        sa.Column("deployment", sa.String, nullable=False),
        sa.Column("guest", sa.String, nullable=False),
    )
    op.create_index("rolling_by_since", "rolling", ["booked", "since"])
    op.execute("insert into counters (name, value) values ('rolled', 0)")


def downgrade() -> None:
    """Forget the rollups."""
    op.execute("delete from counters where name = 'rolled'")
    op.drop_table("rolling")
    op.drop_table("rollups")
