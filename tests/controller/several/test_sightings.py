"""What one controller saw, told to another: whoever writes late makes no node silent, and whoever is gone does."""

import asyncio
import shutil
from pathlib import Path

import pytest

from controller.several.reports import Reports
from controller.several.sightings import LATE_S, PRESENT_S, Sightings
from controller.several.submission import Submission
from controller.store.dialects import Sqlite
from controller.store.store import Store
from tests import idle_time
from tests.controller.house import batch, facts
from tests.controller.one_file import OneFile, Power
from vocab.clock import VirtualClock


async def make(path: Path) -> None:
    await (await Store.open(Sqlite(path))).close()


async def listen(path: Path) -> None:
    clock = VirtualClock(0.0)
    stores = Store(OneFile(path, Power("a", []))), Store(OneFile(path, Power("b", [])))
    a, b = (Sightings(store, name, clock, Reports(clock)) for store, name in zip(stores, "ab", strict=True))

    async def read() -> None:
        async with stores[0].reading() as connection:
            await a.read(connection)

    await a.write()
    async with stores[1].reading() as connection:
        await b.read(connection)  # now it knows that somebody else is there
    b.note(Submission(batch=batch(node="n1", facts=facts("n1"), at=1.0)))
    await b.write()
    await read()
    assert a.waited_for() == []
    clock.advance(LATE_S + 0.5)
    assert a.waited_for() == ["n1"], "it may have reported meanwhile to the one that writes late"
    assert a.waited_for() == [], "once a second is enough"
    clock.advance(1.0)
    a.note(Submission(batch=batch(node="n1", facts=facts("n1"), at=5.0)))
    assert a.waited_for() == [], "it reports here now"
    b.note(Submission(batch=batch(node="n1", facts=facts("n1"), at=6.0)))
    await b.write()
    await read()
    clock.advance(PRESENT_S + 0.5)
    assert a.waited_for() == [], "the other one is gone, and so may be the node"
    for store in stores:
        await store.close()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "corral.db"
    asyncio.run(make(path))
    return path


def test_a_controller_that_writes_late_makes_none_of_its_nodes_silent(empty: Path, tmp_path: Path) -> None:
    idle_time.run(listen(Path(shutil.copy(empty, tmp_path))))
