"""Housekeeping prunes what is old by the configured days, and its outcome is counted."""

import asyncio
from pathlib import Path

from tests.controller.house import House, Keys, batch, event, house
from vocab.clock import VirtualClock
from vocab.events import epoch_s


async def prune(home: House) -> None:
    """Prune once it decides: a clock that leaps a day costs a lease."""
    async with asyncio.timeout(60):
        while not home.inside.conductor.decides:
            await asyncio.sleep(0.01)
    await home.inside.housekeeping.prune()


async def test_events_older_than_the_kept_days_are_pruned(tmp_path: Path, database: Keys) -> None:
    clock = VirtualClock(epoch_s(str(event(1).at)))
    async with house(tmp_path, **database, clock=clock, keep_days=2.0) as home:
        await home.post("agent/batch", batch(event(1)))
        clock.advance(86_400)
        await prune(home)
        assert len(await home.get("events")) == 1
        clock.advance(2 * 86_400)
        await prune(home)
        assert await home.get("events") == []
        assert 'corral_jobs_total{job="prune",outcome="done"} 2.0' in (await home.raw("GET", "/metrics"))[1]


async def test_store_that_takes_nothing_is_counted_and_not_raised(tmp_path: Path) -> None:
    from sqlalchemy import event as hooks

    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        engine = home.inside.store.engine
        hooks.listen(engine.sync_engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only=1"))
        await engine.dispose()
        await home.inside.housekeeping.prune()
        assert 'corral_jobs_total{job="prune",outcome="failed"} 1.0' in (await home.raw("GET", "/metrics"))[1]
        assert len(await home.get("events")) == 1
