"""Run by Alembic for each upgrade; the connection comes from ``controller.store.migrate``."""

from alembic import context

from controller.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter most things in place
    transactional_ddl=True,  # our connection begins transactions itself, so a step that dies leaves nothing
)
with context.begin_transaction():
    context.run_migrations()
