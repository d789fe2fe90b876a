"""Both databases, for every test that stores: ``database`` gives the configuration's keys for an empty one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controller.postgres import Server, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One PostgreSQL server for the session."""
    with server() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a controller's configuration says of a new database: nothing for SQLite."""
    if request.param == "sqlite":
        return {}
    made: Server = request.getfixturevalue("postgres")
    return made.settings(made.fresh())
