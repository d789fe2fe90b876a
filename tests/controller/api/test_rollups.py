"""Rollups over HTTP: by hour and day, filtered, in pages."""

from pathlib import Path

import pytest

from controller.config import PoolConfig
from controller.deciding.mind import real_core
from tests.controller.api.test_paging import walk
from tests.controller.house import House, Keys, batch, event, facts, house, uuid
from vocab.errors import InputError


async def fill(home: House) -> None:
    """Faults of two GPUs on two nodes, rolled up."""
    await home.post("agent/batch", batch(event(1), event(2, gpu=1, code="xid:13"), facts=facts(gpus=2)))
    await home.inside.housekeeping.roll_up()


async def test_days_and_hours_are_listed_and_filtered(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database, make_core=real_core, pools={"a": PoolConfig(nodes=("n1",))}) as home:
        await fill(home)
        faults = await home.get("rollups", measure="fault")
        assert [(row["gpu"], row["name"], row["value"]) for row in faults] == [
            (uuid(0), "xid:79", 1.0),
            (uuid(1), "xid:13", 1.0),
        ]
        assert faults[0]["start"] % 86_400 == 0
        assert [row["name"] for row in await home.get("rollups", gpu=uuid(1), measure="fault", period="hour")] == [
            "xid:13"
        ]
        assert await home.get("rollups", pool="a", measure="fault") == faults
        start = faults[0]["start"]
        assert await home.get("rollups", since=start, until=start) == []
        assert await home.get("rollups", since=start + 1) == []


async def test_they_come_in_pages_that_miss_nothing(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database, make_core=real_core) as home:
        await fill(home)
        every = await home.get("rollups")
        pages = await walk(home, "rollups", limit=1)
        assert [row for page in pages for row in page] == every
        assert len(every) > 1


@pytest.mark.parametrize("cursor", ["WzEsMl0=", "e30=", "WzEsImEiXQ==", "bm90IGpzb24="])
async def test_a_cursor_of_another_list_is_refused(tmp_path: Path, cursor: str) -> None:
    async with house(tmp_path) as home:
        with pytest.raises(InputError, match="cursor"):
            await home.get("rollups", cursor=cursor)


async def test_a_pool_that_there_is_not_is_named(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        with pytest.raises(InputError, match="no pool 'b'"):
            await home.get("rollups", pool="b")
