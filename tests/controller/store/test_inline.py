"""Decisions on SQLite: many rows in one statement, a lock of others waited for, and connected anew after a failure."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.event import listen

from controller.store.dialects import Sqlite
from controller.store.records import Write
from controller.store.store import Store
from controller.store.tables import events
from tests.controller.house import event
from vocab.errors import Unreachable

MANY = 623  # statements of each number of rows that there is, some of them twice


async def test_rows_of_any_number_are_stored_once_and_grow_by_their_revision(tmp_path: Path) -> None:
    store = await Store.open(Sqlite(tmp_path / "corral.db"))
    await store.commit(Write(at=1.0, events=[event(n) for n in range(1, MANY + 1)]))
    await store.commit(Write(at=2.0, events=[event(1, rev=2, text="again"), event(MANY + 1, code="a\0b")]))
    async with store.reading() as connection:
        stored = (await connection.execute(select(events.c.rev, events.c.body).order_by(events.c.stored))).all()
    assert len(stored) == MANY + 1
    assert (stored[0].rev, '"text":"again"' in stored[0].body) == (2, True)
    await store.close()


async def test_who_finds_the_file_locked_is_refused_and_writes_once_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.store.dialects.BUSY_MS", 20)
    store = await Store.open(Sqlite(tmp_path / "corral.db"))
    await store.commit(Write(at=1.0, events=[event(1)]))
    thief = sqlite3.connect(tmp_path / "corral.db", isolation_level=None)
    thief.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unreachable, match="locked"):
        await store.commit(Write(at=2.0, events=[event(2)]))
    thief.execute("ROLLBACK")
    thief.close()
    await store.commit(Write(at=3.0, events=[event(3)]))
    await store.close()
    await store.commit(Write(at=4.0, events=[event(4)]))  # a store that is asked again connects again
    async with store.reading() as connection:
        stored = (await connection.execute(select(events.c.id).order_by(events.c.stored))).scalars()
    assert list(stored) == [event(n).id for n in (1, 3, 4)]
    await store.close()


async def test_whoever_is_cancelled_twice_leaves_a_connection_that_nobody_uses_at_one_time(tmp_path: Path) -> None:
    store = await Store.open(Sqlite(tmp_path / "corral.db"))
    await store.commit(Write(at=1.0, events=[event(1)]))
    writer, may_go = store._writer, threading.Event()
    assert writer is not None

    async def write() -> None:
        async with writer.begin() as connection:
            await connection.exec_driver_sql("SELECT 1")
            stalled.set_result(None)
            await asyncio.get_running_loop().create_future()

    stalled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    writing = asyncio.create_task(write())
    await stalled
    await writer._aside(lambda: None)
    assert writer._thread is not None
    writer._thread.submit(may_go.wait)  # the disk is slow
    for _ in range(3):
        writing.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not writing.done(), "what it began is not undone yet"
    may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await store.commit(Write(at=2.0, events=[event(2)]))
    await store.close()


async def test_between_the_statements_of_a_long_transaction_others_have_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.store.inline.TURN_S", 0.0)  # every one is long
    store = await Store.open(Sqlite(tmp_path / "corral.db"))
    happened: list[str] = []
    listen(store.engines[-1], "before_cursor_execute", lambda *_: happened.append("statement"))

    async def look() -> None:
        while not committing.done():
            if happened[-1:] == ["statement"]:
                happened.append("turn")
            await asyncio.sleep(0)

    committing = asyncio.create_task(store.commit(Write(at=1.0, events=[event(n) for n in range(MANY)])))
    await look()
    await committing
    assert happened.count("turn") > 6
    await store.close()
