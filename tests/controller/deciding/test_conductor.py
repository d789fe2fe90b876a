"""The disk comes first: what fails to be stored did not happen, what was answered survives."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.controller.house import NODE, House, Keys, batch, event, facts, house, uuid
from tests.controller.plain_core import POISON
from vocab.clock import VirtualClock
from vocab.errors import Unreachable


async def until(home: House, *, ready: bool) -> str:
    """Poll readiness until it is as wanted; the reason that it gives."""
    async with asyncio.timeout(60):
        while True:
            status, text, _ = await home.raw("GET", "/readyz")
            if (status == 200) is ready:
                return text
            await asyncio.sleep(0.02)


async def test_restart_folds_what_was_stored(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1)))
        hold = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "fan noise"})
        await home.post("pause", {"reason": "change freeze"})
        before = await home.get("fleet")
    async with house(tmp_path, **database) as home:
        after = await home.get("fleet")
        assert after == {**before, "controller": after["controller"]}  # it may still be about to take the lease
        assert [each["id"] for each in after["nodes"][0]["gpus"][0]["holds"]] == [hold["id"]]
        assert after["paused"] is True
        await home.post("agent/batch", batch(event(1)))
        assert (await home.get("fleet"))["seq"] == before["seq"]


async def test_restart_tells_nodes_nothing_new(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch())
        await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "fan noise"})
        before = await home.get("agent/desired", node=NODE)
    async with house(tmp_path, **database) as home:
        assert await home.get("agent/desired", node=NODE) == before


async def test_full_disk_refuses_batches_says_so_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        await _limit_pages(home, spare=2)
        acknowledged = await report_until_full(home)
        reason = await until(home, ready=False)
        assert "full" in reason
        assert "free space" in reason
        assert len(await home.get("events", limit=1000)) == acknowledged
        await _limit_pages(home, spare=100_000)
        await until(home, ready=True)
        number = acknowledged + 1
        assert (await home.post("agent/batch", batch(event(number), first=number)))["position"] == number
        assert len(await home.get("events", limit=1000)) == number


async def report_until_full(home: House) -> int:
    """Send large events from the second on until the store refuses one; the last position that it took."""
    for number in range(2, 500):
        try:
            await home.post("agent/batch", batch(event(number, text="x" * 2000), first=number))
        except Unreachable:
            return number - 1
    raise AssertionError("the limit of pages did not hold")


async def _limit_pages(home: House, *, spare: int) -> None:
    """Let the database grow by ``spare`` pages only, as on a nearly full disk (each connection has the limit)."""
    from sqlalchemy import event as hooks

    def limit(connection: object, _: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]
        cursor.execute("PRAGMA page_count")
        (pages,) = cursor.fetchone()
        cursor.execute(f"PRAGMA max_page_count={pages + spare}")
        cursor.close()

    store = home.inside.store
    for engine in store.engines:
        hooks.listen(engine, "connect", limit)
    await store.close()  # what is asked next connects anew


async def test_locked_database_refuses_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.store.dialects.BUSY_MS", 20)
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        thief = sqlite3.connect(str(home.inside.store.database), isolation_level=None)
        thief.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unreachable, match="locked"):
            await home.post("agent/batch", batch(event(2), first=2))
        thief.execute("ROLLBACK")
        thief.close()
        await until(home, ready=True)
        assert [each["text"] for each in await home.get("events")] == ["fault 1"]
        assert (await home.post("agent/batch", batch(event(2), first=2)))["position"] == 2


async def test_core_does_not_run_ahead_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.store.dialects.BUSY_MS", 20)
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        thief = sqlite3.connect(str(home.inside.store.database), isolation_level=None)
        thief.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unreachable):
            await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "never stored"})
        assert (await home.get("fleet"))["nodes"][0]["gpus"][0]["holds"] == []
        thief.execute("ROLLBACK")
        thief.close()
        await until(home, ready=True)
        assert await home.get("holds") == []


async def test_error_of_the_core_refuses_one_batch_and_the_rest_goes_on(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1)))
        with pytest.raises(Unreachable, match="could not process"):
            await home.post("agent/batch", batch(event(2, text=POISON), first=2))
        await until(home, ready=True)
        other = batch(event(3, node="n2"), node="n2", facts=facts("n2"))
        assert (await home.post("agent/batch", other))["position"] == 1
        assert [each["text"] for each in await home.get("events")] == ["fault 1", "fault 3"]


async def test_restored_database_begins_a_new_epoch_above_every_generation(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database, clock=VirtualClock(1_796_000_000.0)) as home:
        await home.post("agent/batch", batch())
        before = await home.get("agent/desired", node=NODE)
        await home.post("agent/batch", batch(generation=before["generation"] + 40))
        after = await home.get("agent/desired", node=NODE, generation=before["generation"] + 40)
        assert after["epoch"] > before["epoch"]
        assert after["generation"] == before["generation"] + 41


async def test_a_new_epoch_is_logged_once_though_many_reports_are_ahead(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        generation = (await home.get("agent/desired", node=NODE))["generation"]
        for ahead in (40, 90, 140):
            await home.post("agent/batch", batch(generation=generation + ahead))
    assert len([each for each in caplog.messages if "a new epoch begins" in each]) == 1


async def test_heartbeat_without_news_writes_nothing(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch())
        generation = (await home.get("agent/desired", node=NODE))["generation"]
        commits = home.inside.export.histogram("corral_store_commit_seconds")
        before = commits.collect()[0].samples[-2].value
        for _ in range(5):
            await home.post("agent/batch", batch(facts=None, generation=generation))
        assert commits.collect()[0].samples[-2].value == before


async def test_the_fleet_is_seen_while_one_turn_follows_the_other(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        going = True

        async def report() -> None:
            while going:
                await home.post("agent/batch", batch())

        reporters = [asyncio.create_task(report()) for _ in range(8)]
        for number in range(20):
            hold = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": f"look {number}"})
            assert hold["id"] in {each["id"] for each in await home.get("holds")}
        going = False
        await asyncio.gather(*reporters)
