"""Lists in pages: whole, without repeats, and unmoved by what is added meanwhile."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from controller.deciding.mind import real_core
from controller.store import pages
from tests.controller.house import House, batch, event, facts, house, uuid
from vocab.errors import InputError
from vocab.events import Severity
from vocab.observations import GpuIdentity


async def walk(home: House, path: str, **query: Any) -> list[list[Any]]:
    """Every page of a list, in the order in which they are asked for."""
    found, cursor = [], ""
    while True:
        page = await home.get(path, cursor=cursor, **query)
        found.append(page["items"])
        if page["next"] is None:
            return found
        cursor = page["next"]


async def test_a_history_goes_back_page_by_page(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(*(event(number) for number in range(1, 8))))
        told = await walk(home, "events", limit=3)
        texts = [[each["text"] for each in page] for page in told]
        assert texts == [["fault 5", "fault 6", "fault 7"], ["fault 2", "fault 3", "fault 4"], ["fault 1"]]


async def test_what_is_added_meanwhile_moves_no_page(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(*(event(number) for number in range(1, 5))))
        first = await home.get("events", cursor="", limit=2)
        await home.post("agent/batch", batch(event(9), event(1, rev=2, count=7), first=5))
        second = await home.get("events", cursor=first["next"], limit=2)
        assert [each["text"] for each in second["items"]] == ["fault 1", "fault 2"]
        assert second["next"] is None


async def test_the_link_leads_to_the_next_page(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1), event(2), event(3, code="xid:13")))
        _, _, headers = await home.raw("GET", "/api/v1/events?limit=1&code=xid:79")
        link = headers["Link"]
        assert link.endswith('; rel="next"')
        address = link.partition(">")[0].removeprefix("<")
        answer = await home.call("GET", address, Any)
        assert [each["text"] for each in answer["items"]] == ["fault 1"]
        assert answer["next"] is None
        _, _, headers = await home.raw("GET", "/api/v1/events?code=xid:79")
        assert "Link" not in headers


async def test_what_stands_goes_by_name_and_whole_without_a_limit(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(facts=facts(gpus=5)))
        assert len(await home.get("gpus")) == 5
        told = await walk(home, "gpus", limit=2)
        assert [[each["uuid"] for each in page] for page in told] == [[uuid(0), uuid(1)], [uuid(2), uuid(3)], [uuid(4)]]
        assert await walk(home, "deployments") == [[]]


async def test_nodes_whose_names_begin_alike_keep_their_order_over_pages(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        for name in ("n1", "n1-a", "n", "n10"):
            told = facts(gpus=0)
            mine = tuple(GpuIdentity(uuid=f"GPU-{name}-{n}", index=n, pci=f"{n}") for n in (1, 0))
            await home.post("agent/batch", batch(node=name, facts=replace(told, node=name, gpus=mine)))
        nodes, gpus = await walk(home, "nodes", limit=3), await walk(home, "gpus", limit=3)
        assert [each["node"] for page in nodes for each in page] == ["n", "n1", "n1-a", "n10"]
        names = [each["uuid"] for page in gpus for each in page]
        assert names == [f"GPU-{name}-{n}" for name in ("n", "n1", "n1-a", "n10") for n in (0, 1)]
        assert [len(page) for page in gpus] == [3, 3, 2]
        assert [[each["uuid"] for each in page] for page in await walk(home, "gpus", limit=1, node="n1-a")] == [
            ["GPU-n1-a-0"],
            ["GPU-n1-a-1"],
        ]


@pytest.mark.parametrize("cursor", ["?", "AAA", "ZZ==x", "\u00e9", "LTE=", "eA=="])
async def test_a_cursor_of_something_else_is_refused(tmp_path: Path, cursor: str) -> None:
    async with house(tmp_path) as home:
        with pytest.raises(InputError, match="`cursor` is"):
            await home.get("events", cursor=cursor)


async def test_events_are_found_by_time_and_severity(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1), event(2, severity=Severity.INFO), event(3)))
        texts = [each["text"] for each in await home.get("events", since=1_796_000_002, until=1_796_000_003)]
        assert texts == ["fault 2"]
        assert [each["text"] for each in await home.get("events", severity="error")] == ["fault 1", "fault 3"]


async def test_lists_are_narrowed_by_what_is_asked(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await home.post("agent/batch", batch(event(1)))
        await home.post("holds", {"subject": {"gpu": uuid(1)}, "reason": "noise", "owner": "lab"})
        assert [each["owner"] for each in await home.get("holds", owner="lab")] == ["lab"]
        assert await home.get("holds", node="n1") == []
        assert [each["code"] for each in await home.get("incidents", severity="critical", gpu=uuid(0))] == ["xid:79"]
        assert await home.get("incidents", gpu=uuid(1)) == []
        assert await home.get("incidents", code="xid:13") == []
        assert await home.get("actions", of="power_cycle") == []
        assert [each["node"] for each in await home.get("nodes", state="live")] == ["n1"]
        assert await home.get("nodes", state="lost") == []
        assert [each["act"] for each in await home.get("audit", act="hold")] == ["hold"]


async def test_a_filter_that_matches_little_ends_its_page_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "CHUNK", 1)
    monkeypatch.setattr(pages, "LOOKED_AT", 1)
    async with house(tmp_path, make_core=real_core) as home:
        await home.post("agent/batch", batch(event(1), event(2, gpu=1)))
        told = await walk(home, "incidents", gpu=uuid(0))
        assert len(told) > 2
        assert [line["subject"]["gpu"] for page in told for line in page] == [uuid(0)]


async def test_an_answer_that_the_caller_has_is_not_sent_again(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        _, text, headers = await home.raw("GET", "/api/v1/holds")
        same = {"If-None-Match": f'"other", {headers["ETag"]}'}
        assert (await home.raw("GET", "/api/v1/holds", headers=same))[:2] == (304, "")
        await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "noise"})
        status, fresh, later = await home.raw("GET", "/api/v1/holds", headers=same)
        assert (status, fresh != text, later["ETag"] != headers["ETag"]) == (200, True, True)


async def test_a_hold_that_changed_is_not_lifted_by_who_saw_the_old_one(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        hold = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "noise"})
        path = f"/api/v1/holds/{hold['id']}"
        status, text, headers = await home.raw("GET", path)
        order: dict[str, Any] = {"json": {"reason": "fixed"}}
        status, text, _ = await home.raw("DELETE", path, headers={"If-Match": '"old"'}, **order)
        assert (status, "If-Match" in text) == (412, True)
        status, _, _ = await home.raw("DELETE", path, headers={"If-Match": headers["ETag"]}, **order)
        assert status == 200
        status, _, _ = await home.raw("DELETE", path, headers={"If-Match": headers["ETag"]}, **order)
        assert status == 404
