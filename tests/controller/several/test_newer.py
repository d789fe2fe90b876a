"""An upgrade one controller after another: an older one that meets what a newer one wrote says so, and does no harm."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.config import Config
from controller.several.inbox import Body
from controller.store import form, shared
from controller.store.store import Store
from tests.controller.house import House, Keys, batch, event, facts, house
from tests.controller.postgres import Server
from vocab.errors import ConfigError, Unreachable

NEWER = form.FORM + 1


@pytest.fixture
def name(postgres: Server) -> str:
    return postgres.fresh()


@pytest.fixture
def keys(postgres: Server, name: str) -> Keys:
    return postgres.settings(name)


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.02)


async def marked(postgres: Server, name: str, number: int) -> None:
    """Somebody of this form has decided there."""
    done = "INSERT INTO counters VALUES ('form', $1) ON CONFLICT (name) DO UPDATE SET value = $1"
    await postgres.run(name, done, number)


async def taken_over(postgres: Server, name: str) -> None:
    """Another controller takes the lease, and gives it up at once."""
    await postgres.run(name, "UPDATE lease SET term = term + 1, holder = 'newer/1', renewed = 0")


def says(home: House, words: str) -> Any:
    async def said() -> bool:
        ready, why = home.inside.conductor.ready
        return not ready and words in why

    return said


def leads(home: House) -> Any:
    async def decides() -> bool:
        return home.inside.conductor.leads and home.inside.conductor.ready[0]

    return decides


async def test_an_older_controller_steps_back_for_good_once_a_newer_one_has_decided(
    tmp_path: Path, keys: Keys, postgres: Server, name: str
) -> None:
    async with house(tmp_path, **keys) as home:
        await home.post("agent/batch", batch(event(1)))
        await marked(postgres, name, NEWER)
        await taken_over(postgres, name)
        await until(says(home, "a newer version has decided on this database"))
        with pytest.raises(Unreachable, match="upgrade this controller too"):
            await home.post("agent/batch", batch(event(2), first=2))
        status, text, _ = await home.raw("GET", "/readyz")
        assert (status, f"this one knows {form.FORM}" in text) == (503, True)
        leader = home.inside.shared.leader if home.inside.shared is not None else None
        assert leader is not None
        await leader._try()
        assert leader.term is None, "the lease is free, and not for it"
        await marked(postgres, name, form.FORM)  # as a restored database has it
        await until(leads(home))
        assert (await home.post("agent/batch", batch(event(2), first=2)))["position"] == 2


async def test_a_line_that_cannot_be_read_stops_nobody_for_good_and_is_said(
    tmp_path: Path, keys: Keys, postgres: Server, name: str
) -> None:
    odd = """{"kind": "action", "at": 1.0, "subject": {}, "of": "a deed of tomorrow"}"""
    async with house(tmp_path, **keys) as home:
        await home.post("agent/batch", batch(event(1)))
        (row,) = await postgres.run(
            name,
            "INSERT INTO changes (seq, at, kind, key, subject, line)"
            " SELECT value + 1, 1.0, 'action', 'k', '', $1 FROM counters WHERE name = 'seq' RETURNING seq",
            odd,
        )
        await postgres.run(name, "UPDATE counters SET value = value + 1 WHERE name IN ('seq', 'turn')")
        await taken_over(postgres, name)
        await until(says(home, "what this version cannot read"))
        assert not home.inside.conductor.leads
        await postgres.run(name, "DELETE FROM changes WHERE seq = $1", row["seq"])
        await until(leads(home))
        assert [each["text"] for each in await home.get("events")] == ["fault 1"]


async def test_what_an_older_one_could_not_read_of_the_inbox_is_taken_up_by_the_newer_one(
    tmp_path: Path, keys: Keys, postgres: Server, name: str
) -> None:
    store = Store(postgres.database(name))
    reports = [batch(event(1), facts=facts()), batch(event(2), first=2, facts=None)]
    bodies = [(f"row {place}", msgspec.json.encode(Body(batch=each)).decode()) for place, each in enumerate(reports)]
    async with store.noting() as connection:
        await shared.post(connection, bodies)
        for row in await shared.waiting(connection):
            await shared.put_aside(connection, row.id, f"{shared.UNREAD}: an unknown word")
        assert await shared.failed(connection) == 2
    await store.close()
    await marked(postgres, name, form.FORM - 1)
    async with house(tmp_path, **keys) as home:

        async def read() -> bool:
            return len(await home.get("events")) == 2

        await until(read)
        found = await postgres.run(name, "SELECT value FROM counters WHERE name = 'form'")
        assert [each["value"] for each in found] == [form.FORM]


async def test_what_was_put_aside_is_counted_and_goes_when_it_is_old(postgres: Server, name: str) -> None:
    store = Store(postgres.database(name))
    async with store.noting() as connection:
        await shared.post(connection, [("k", "{}"), ("l", "{}")])
        first, _ = await shared.waiting(connection)
        await shared.put_aside(connection, first.id, "odd")
        assert await shared.failed(connection) == 1
        assert await shared.forget_failed(connection, 3600.0) == 0
        assert await shared.forget_failed(connection, -3600.0) == 1
        assert await shared.failed(connection) == 0
        assert len(await shared.waiting(connection)) == 1
    await store.close()


async def test_an_answer_of_a_newer_one_that_cannot_be_read_says_that_it_was_done(
    tmp_path: Path, keys: Keys, postgres: Server, name: str
) -> None:
    async with house(tmp_path / "a", **keys) as first, house(tmp_path / "b", **keys) as second:
        await first.post("agent/batch", batch())
        assert second.inside.shared is not None
        async with first.inside.store.writing():  # the one that decides is busy
            asked = asyncio.create_task(second.post("pause", {"reason": "freeze"}))

            async def waits() -> bool:
                done = 'UPDATE inbox SET answer = \'[{"kind": "of tomorrow"}]\' WHERE answer IS NULL RETURNING id'
                return bool(await postgres.run(name, done))

            await until(waits)
            with pytest.raises(Unreachable, match="it was carried out"):
                await asked
        assert second.inside.conductor.ready[0]


async def test_a_database_that_a_newer_version_wrote_is_refused_at_the_start(tmp_path: Path, database: Keys) -> None:
    place = Config(state_dir=str(tmp_path), **database).place
    store = await Store.open(place)
    async with store.writing() as connection:
        await connection.execute(store.database.insert(form.counters).values(name=form.NAME, value=NEWER))
    await store.close()
    with pytest.raises(ConfigError, match=r"was written by a newer version .* install that version or restore a copy"):
        async with house(tmp_path, **database):
            pass
