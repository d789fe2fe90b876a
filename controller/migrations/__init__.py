"""The database's shape as steps that Alembic takes at start; they ship with the package."""
