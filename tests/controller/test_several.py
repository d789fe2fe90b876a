"""Several controllers on one PostgreSQL: one decides, all take in and show, and nothing is lost or done twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import delete

from controller.several.inbox import GROUP, STALE_S, Body, Inbox
from controller.several.leader import SURE_S, TTL_S, Leader
from controller.several.reports import Reports
from controller.several.shared import Shared
from controller.several.sightings import Sightings
from controller.several.submission import Submission
from controller.store import read, shared, tables
from controller.store.records import Write
from controller.store.store import Store
from tests.controller.house import NODE, House, Keys, batch, event, facts, house, uuid
from tests.controller.plain_core import POISON
from tests.controller.postgres import Server
from tests.controller.telling.test_export import samples
from vocab.clock import SystemClock, VirtualClock
from vocab.errors import Deposed, Unreachable
from vocab.lines import NoteLine, Subject
from vocab.messages import ReplicaStatus

NOTE = NoteLine(at=1.0, subject=Subject(), code="paused", text="freeze")


@pytest.fixture
def name(postgres: Server) -> str:
    return postgres.fresh()


@pytest.fixture
def keys(postgres: Server, name: str) -> Keys:
    return postgres.settings(name)


@asynccontextmanager
async def pair(folder: Path, keys: Keys) -> AsyncIterator[tuple[House, House]]:
    """The controller that decides, and one that follows it."""
    async with house(folder / "a", **keys) as first, house(folder / "b", **keys) as second:
        assert first.inside.conductor.leads
        assert not second.inside.conductor.leads
        yield first, second


@pytest.fixture
async def stores(postgres: Server, name: str) -> AsyncIterator[tuple[Store, Store]]:
    made = Store(postgres.database(name)), Store(postgres.database(name))
    yield made
    for store in made:
        await store.close()


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.02)


async def texts(home: House) -> list[str]:
    return [each["text"] for each in await home.get("events", limit=1000)]


async def test_batch_of_one_that_follows_is_stored_once_and_shown_by_both(tmp_path: Path, keys: Keys) -> None:
    async with pair(tmp_path, keys) as (first, second):
        for _ in range(2):
            ack = await second.post("agent/batch", batch(event(1), event(2)))
            assert (ack["position"], ack["want_facts"]) == (2, False)

        async def both() -> bool:
            return await texts(first) == await texts(second) == ["fault 1", "fault 2"]

        await until(both)
        assert len((await second.get("fleet"))["nodes"]) == 1
        assert (await second.get("fleet"))["controller"].startswith("follows ")
        assert (await first.get("fleet"))["controller"] == "decides"


async def test_node_may_change_between_controllers_in_the_middle_of_its_stream(tmp_path: Path, keys: Keys) -> None:
    async with pair(tmp_path, keys) as homes:
        await homes[0].post("agent/batch", batch())
        await until(lambda: _knows(homes[1]))
        for number in range(1, 21):
            report = batch(event(number), first=number, facts=None, at=float(number))
            assert (await homes[number % 2].post("agent/batch", report))["position"] == number

        async def all_there() -> bool:
            return await texts(homes[0]) == [f"fault {number}" for number in range(1, 21)]

        await until(all_there)


async def test_what_waits_in_the_inbox_in_great_number_comes_before_what_its_node_says_here_later(
    tmp_path: Path, keys: Keys, stores: tuple[Store, Store]
) -> None:
    async with house(tmp_path, **keys) as home:
        conductor, many = home.inside.conductor, GROUP + 40
        await home.post("agent/batch", batch())
        async with home.inside.store.writing():  # its turn waits, and so does what comes meanwhile
            turn = asyncio.create_task(
                conductor.submit(Submission(batch=batch(node="n2", session="s2", facts=facts("n2"))))
            )
            async with stores[0].noting() as connection:
                bodies = [
                    msgspec.json.encode(Body(batch=batch(event(number), first=number, facts=None))).decode()
                    for number in range(1, many + 1)
                ]
                await shared.post(connection, [(str(number), body) for number, body in enumerate(bodies)])
            last = Submission(batch=batch(event(many + 1), first=many + 1, facts=None))
            told = asyncio.create_task(conductor.submit(last))
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await asyncio.gather(turn, told)
        assert await texts(home) == [f"fault {number}" for number in range(1, many + 2)]


async def test_order_to_one_that_follows_is_answered_with_what_it_led_to(tmp_path: Path, keys: Keys) -> None:
    async with pair(tmp_path, keys) as (first, second):
        await first.post("agent/batch", batch())
        await until(lambda: _knows(second))
        hold = await second.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "fan noise"})
        assert [each["id"] for each in await first.get("holds")] == [hold["id"]]
        assert [each["id"] for each in await second.get("holds")] == [hold["id"]]
        assert [each["act"] for each in await second.get("audit")] == ["hold"]
        assert [each["gpu"] for each in (await second.get("agent/desired", node=NODE, wait_s=0))["holds"]] == [uuid(0)]


async def _knows(home: House) -> bool:
    return bool((await home.get("fleet"))["nodes"])


async def test_records_of_an_unknown_node_wait_for_its_facts_wherever_they_come_in(tmp_path: Path, keys: Keys) -> None:
    async with pair(tmp_path, keys) as (_, second):
        ack = await second.post("agent/batch", batch(event(1), facts=None))
        assert (ack["want_facts"], ack["position"]) == (True, 0)
        assert (await second.post("agent/batch", batch(event(1))))["position"] == 1


async def test_next_one_decides_when_the_first_stops_and_knows_all_that_it_did(tmp_path: Path, keys: Keys) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(house(tmp_path / "a", **keys))
        async with house(tmp_path / "b", **keys) as second:
            await first.post("agent/batch", batch(event(1)))
            await until(lambda: _knows(second))
            await second.post("pause", {"reason": "change freeze"})
            await stack.aclose()

            async def decides() -> bool:
                return second.inside.conductor.decides and second.inside.conductor.ready[0]

            await until(decides)
            assert (await second.get("fleet"))["paused"] is True
            await second.post("agent/batch", batch(event(2), first=2))
            assert await texts(second) == ["fault 1", "fault 2"]


async def test_what_the_core_fails_on_in_the_inbox_is_put_aside_and_the_rest_goes_on(
    tmp_path: Path, keys: Keys, postgres: Server, name: str
) -> None:
    async with pair(tmp_path, keys) as (first, second):
        other = batch(event(3, node="n2"), node="n2", facts=facts("n2"))
        reports = [batch(event(1)), batch(event(2, text=POISON), first=2), other]
        for report in reports:
            assert (await second.post("agent/batch", report))["position"] > 0

        async def gone_on() -> bool:
            try:
                return sorted(await texts(first)) == ["fault 1", "fault 3"]
            except Unreachable:
                return False

        await until(gone_on)

        async def put_aside() -> bool:
            return len(await postgres.run(name, "SELECT 1 FROM inbox WHERE failed IS NOT NULL")) == 1

        await until(put_aside)
        assert len(await postgres.run(name, "SELECT 1 FROM inbox")) == 1


async def test_what_the_database_refuses_of_the_inbox_is_put_aside_and_the_rest_goes_on(
    tmp_path: Path, keys: Keys, stores: tuple[Store, Store]
) -> None:
    noise = "".join(sha256(str(place).encode()).hexdigest() for place in range(500))  # no index takes it
    odd = facts("n2")
    odd = msgspec.structs.replace(odd, gpus=(msgspec.structs.replace(odd.gpus[0], serial=noise),))
    reports = [batch(event(2, node="n2"), node="n2", facts=odd), batch(event(1))]
    async with house(tmp_path, **keys) as home:
        rows = [(f"row {place}", msgspec.json.encode({"batch": each}).decode()) for place, each in enumerate(reports)]
        async with stores[0].noting() as connection:
            await shared.post(connection, rows)

        async def gone_on() -> bool:
            try:
                return await texts(home) == ["fault 1"]
            except Unreachable:
                return False

        await until(gone_on)


async def test_fleet_is_exported_by_the_one_that_decides_and_its_role_by_each(tmp_path: Path, keys: Keys) -> None:
    async with pair(tmp_path, keys) as (first, second):
        await first.post("agent/batch", batch(event(1)))
        await until(lambda: _knows(second))
        leading, following = [samples((await home.raw("GET", "/metrics"))[1]) for home in (first, second)]
        assert (leading["corral_leader", ()], following["corral_leader", ()]) == (1.0, 0.0)
        assert following["corral_follower_lag_seconds", ()] < 5.0
        assert following["corral_lease_age_seconds", ()] < TTL_S
        assert ("corral_gpus", (("state", "healthy"),)) in leading
        assert not [each for each in following if each[0] in {"corral_gpus", "corral_gpu_state", "corral_holds"}]
        assert '"ok: follows' in (await second.raw("GET", "/readyz"))[1]


async def test_who_waits_for_a_turn_that_another_controllers_term_cuts_off_is_sent_away(
    tmp_path: Path, keys: Keys, stores: tuple[Store, Store]
) -> None:
    async with house(tmp_path, **keys) as home:
        conductor = home.inside.conductor
        async with home.inside.store.writing():  # its turn cannot store anything yet
            waits = asyncio.create_task(conductor.submit(Submission(batch=batch(event(1)))))
            async with stores[0].noting() as connection:
                await shared.resign(connection, 1)
                assert await shared.take(connection, "new", await shared.look(connection)) == 2
            async with asyncio.timeout(60):
                with pytest.raises(Deposed):
                    await waits


# -- the lease ----------------------------------------------------------------------------------------------


async def test_stale_leader_can_store_nothing(stores: tuple[Store, Store]) -> None:
    old, new = stores
    async with old.noting() as connection:
        old.term = await shared.take(connection, "old", await shared.look(connection))
    await old.commit(Write(at=1.0, lines=[NOTE]))
    async with new.noting() as connection:
        await shared.resign(connection, 1)
        new.term = await shared.take(connection, "new", await shared.look(connection))
    with pytest.raises(Deposed):
        await old.commit(Write(at=1.0, lines=[NOTE]))
    assert await new.commit(Write(at=1.0, lines=[NOTE])) == 2


async def test_lease_that_is_renewed_is_not_taken(stores: tuple[Store, Store]) -> None:
    async with stores[0].noting() as connection:
        assert await shared.take(connection, "old", await shared.look(connection)) == 1
    async with stores[1].noting() as connection:
        seen = await shared.look(connection)
    async with stores[0].noting() as connection:
        assert await shared.renew(connection, 1)
    async with stores[1].noting() as connection:
        assert await shared.take(connection, "new", seen) is None


async def test_lease_is_renewed_beside_a_transaction_that_takes_long(stores: tuple[Store, Store]) -> None:
    store, beside = stores
    async with store.noting() as connection:
        store.term = await shared.take(connection, "me", await shared.look(connection))
    async with store.deciding(), beside.noting() as connection:
        assert await shared.renew(connection, 1)


async def _stand_still(old: Store, new: Store) -> None:
    """Be in the middle of a transaction while the lease runs out, until another has taken it; then go on."""
    async with old.deciding() as connection:
        async with new.noting() as other:
            await shared.resign(other, 1)
        async with asyncio.timeout(60):
            await Leader(new, "new", SystemClock()).campaign()
        await connection.execute(delete(tables.inbox))


async def test_leader_that_stands_still_in_its_transaction_is_ended(stores: tuple[Store, Store]) -> None:
    old, new = stores
    async with old.noting() as connection:
        old.term = await shared.take(connection, "old", await shared.look(connection))
    with pytest.raises(Unreachable):
        await _stand_still(old, new)
    async with new.noting() as connection:
        assert (await shared.look(connection)).holder == "new"


async def test_however_the_databases_clock_steps_no_two_are_sure_at_once(stores: tuple[Store, Store]) -> None:
    clock = VirtualClock(0.0)
    first, second = Leader(stores[0], "first", clock), Leader(stores[1], "second", clock)
    await first.campaign()
    await second._try()
    async with stores[0].noting() as connection:  # as if the database's clock had gone on by an hour since
        await connection.execute(tables.lease.update().values(renewed=tables.lease.c.renewed - 3600.0))
    took = []
    for _ in range(20):
        await second._try()
        assert not (first.is_sure and second.is_sure)
        took.append(second.is_sure)
        clock.advance(0.25)
    assert took.index(True) * 0.25 >= TTL_S, "it has seen it stand for so long by its own clock"
    assert not first.is_sure, "and the other knows by its own"


async def test_lease_is_taken_over_though_the_databases_clock_was_set_back(stores: tuple[Store, Store]) -> None:
    old, new = stores
    clock = VirtualClock(0.0)
    async with old.noting() as connection:
        assert await shared.take(connection, "old", await shared.look(connection)) == 1
        await connection.execute(tables.lease.update().values(renewed=shared.NOW + 3600.0))  # an hour ahead of it now
    leader = Leader(new, "new", clock)
    await leader._try()
    assert leader.term is None
    clock.advance(TTL_S)  # and nobody has renewed it
    await leader._try()
    assert (leader.term, leader.is_sure) == (2, True)


# -- inbox and sightings ------------------------------------------------------------------------------------


async def test_order_that_is_withdrawn_undoes_the_turn_that_took_it(stores: tuple[Store, Store]) -> None:
    store, beside = stores
    async with store.noting() as connection:
        store.term = await shared.take(connection, "me", await shared.look(connection))
        await shared.post(connection, [("k", "{}")])
    async with store.reading() as connection:
        (row,) = await shared.waiting(connection)
    async with beside.noting() as connection:
        assert await shared.withdraw(connection, "k")
    with pytest.raises(Unreachable, match="withdrawn"):
        await store.commit(Write(at=1.0, lines=[NOTE], answers=[shared.Answer(row.id, "[]")]))
    async with store.reading() as connection:
        assert await read.counter(connection, "seq") == 0


async def test_order_that_was_answered_cannot_be_withdrawn(stores: tuple[Store, Store]) -> None:
    store, beside = stores
    async with store.noting() as connection:
        store.term = await shared.take(connection, "me", await shared.look(connection))
        await shared.post(connection, [("k", "{}")])
    async with store.reading() as connection:
        (row,) = await shared.waiting(connection)
    await store.commit(Write(at=1.0, answers=[shared.Answer(row.id, "[]")]))
    async with beside.noting() as connection:
        assert not await shared.withdraw(connection, "k")
        assert await shared.answers(connection, ["k", "other"]) == {"k": "[]"}
        assert await shared.answers(connection, ["k"]) == {}


def _sightings(store: Store, name: str, clock: VirtualClock) -> Sightings:
    return Sightings(store, name, clock, Reports(clock))


async def _read(sightings: Sightings, store: Store) -> list[Submission]:
    async with store.reading() as connection:
        return await sightings.read(connection)


async def test_latest_of_each_node_is_told_to_the_others_once(stores: tuple[Store, Store]) -> None:
    clock = VirtualClock(0.0)
    a, b = _sightings(stores[0], "a", clock), _sightings(stores[1], "b", clock)
    await b.write()
    assert await _read(a, stores[0]) == []  # now it knows that there is another
    status = ReplicaStatus(replica="r", deployment="chat", phase="ready", ready=True)
    a.note(Submission(batch=batch(event(1), at=1.0, replicas=(status,))))
    a.note(Submission(batch=batch(at=3.0, paused=True)))
    await a.write()
    (seen,) = await _read(b, stores[1])
    assert seen.batch is not None
    assert (seen.batch.items, seen.batch.facts, seen.batch.replicas) == ((), None, (status,))
    assert (seen.batch.at, seen.batch.paused) == (3.0, True)
    assert await _read(b, stores[1]) == []
    assert await _read(a, stores[0]) == []


async def test_what_a_node_said_before_it_came_here_is_not_taken_for_news(stores: tuple[Store, Store]) -> None:
    clock = VirtualClock(0.0)
    a, b = _sightings(stores[0], "a", clock), _sightings(stores[1], "b", clock)
    await b.write()
    await _read(a, stores[0])
    a.note(Submission(batch=batch(at=1.0)))
    b.note(Submission(batch=batch(at=2.0)))
    await a.write()
    assert await _read(b, stores[1]) == []


async def test_controller_that_stood_still_does_not_tell_what_it_saw_before(stores: tuple[Store, Store]) -> None:
    clock = VirtualClock(0.0)
    a, b = _sightings(stores[0], "a", clock), _sightings(stores[1], "b", clock)
    await b.write()
    await _read(a, stores[0])
    a.note(Submission(batch=batch(at=1.0)))
    clock.advance(9.0)
    await a.write()
    assert await _read(b, stores[1]) == []


async def test_leader_is_not_sure_of_its_lease_once_it_may_have_run_out(stores: tuple[Store, Store]) -> None:
    clock = VirtualClock(0.0)
    async with stores[0].noting() as connection:
        await shared.resign(connection, 0)
    leader = Leader(stores[0], "me", clock)
    await leader.campaign()
    assert leader.is_sure
    clock.advance(SURE_S)  # it was stopped for so long
    assert (leader.term, leader.is_sure) == (1, False)


# -- odd rows -----------------------------------------------------------------------------------------------


async def _waiting(inbox: Inbox, store: Store) -> list[Submission]:
    async with store.reading() as connection:
        return await inbox.read(connection, 10)


async def test_what_a_controller_of_another_version_wrote_stops_nobody(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    clock = VirtualClock(0.0)
    inbox, sightings = Inbox(store, clock), _sightings(store, "me", clock)
    odd = '{"stimuli":[{"stimulus":"of tomorrow"}]}'
    async with store.noting() as connection:
        await shared.post(connection, [("odd", odd), ("plain", "{}")])
        await shared.sight(connection, shared.Sighting("other", 1, odd))
    assert len(await _waiting(inbox, store)) == 1
    assert await _read(sightings, store) == []
    async with store.reading() as connection:
        assert len(await shared.waiting(connection)) == 1


async def test_row_that_is_looked_at_alone_is_not_blamed_for_what_was_seen(stores: tuple[Store, Store]) -> None:
    store, beside = stores
    clock = VirtualClock(0.0)
    both = Shared(store, beside, "me", clock, Reports(clock))
    seen = '{"stimuli":[{"stimulus":"reported","node":"n1"}]}'
    async with beside.noting() as connection:
        await shared.post(connection, [("row", "{}")])
        await shared.sight(connection, shared.Sighting("other", 1, seen))
    assert [each.row is None for each in await both.arrived(1)] == [False]
    assert [each.row is None for each in await both.arrived(2)] == [True, False]


async def test_order_for_which_nobody_waits_any_more_is_not_carried_out(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    async with store.noting() as connection:
        await shared.post(connection, [("order", "{}")])
        await connection.execute(tables.inbox.update().values(at=shared.NOW - STALE_S - 1.0))
        report = msgspec.json.encode({"batch": batch(event(1))}).decode()
        await shared.post(connection, [("report", report)])
        await connection.execute(tables.inbox.update().values(at=shared.NOW - STALE_S - 1.0))
    (found,) = await _waiting(Inbox(store, VirtualClock(0.0)), store)
    assert found.batch is not None


async def test_order_whose_answer_was_lost_is_not_waited_for_for_ever(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    clock = VirtualClock(0.0)
    inbox = Inbox(store, clock)
    running = asyncio.create_task(inbox.run())
    order = asyncio.create_task(inbox.post(Submission()))

    async def posted() -> bool:
        return bool(inbox._orders)

    await until(posted)
    async with store.noting() as connection:
        await connection.execute(delete(tables.inbox))
    clock.advance(STALE_S + 1.0)
    assert await inbox.look() == []
    with pytest.raises(Unreachable, match="look before"):
        await order
    running.cancel()
