"""Silences in an Alertmanager: they follow maintenances, over restarts too. Here one that keeps them in a list."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from controller.notify.config import AlertmanagerConfig
from controller.outward.silences import MARK, Silences
from vocab.lines import HoldLine, Subject
from vocab.states import ClearsOn
from wire.client import Client

T0 = 1_796_000_000.0


class Alertmanager:
    """What of its API v2 is used. A POST with an id moves that silence; with another begin too, it ends that one and
    makes another. It lists what has ended last."""

    def __init__(self) -> None:
        self.silences: dict[str, dict[str, object]] = {}

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v2/silences", self._list)
        app.router.add_post("/api/v2/silences", self._make)
        app.router.add_delete("/api/v2/silence/{id}", self._end)
        return app

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response(sorted(self.silences.values(), key=lambda each: each["status"] != {"state": "active"}))

    async def _make(self, request: web.Request) -> web.Response:
        body = await request.json()
        known = body.pop("id", None) or f"s{len(self.silences)}"
        if known in self.silences and self.silences[known]["startsAt"] != body["startsAt"]:
            self.silences[known]["status"] = {"state": "expired"}
            known = f"s{len(self.silences)}"
        self.silences[known] = body | {"id": known, "status": {"state": "active"}}
        return web.json_response({"silenceID": known})

    async def _end(self, request: web.Request) -> web.Response:
        self.silences[request.match_info["id"]]["status"] = {"state": "expired"}
        return web.Response()

    def active(self) -> list[dict[str, object]]:
        return [each for each in self.silences.values() if each["status"] == {"state": "active"}]


def hold(until: float = T0 + 3600, id: str = "h1", at: float = T0) -> HoldLine:  # noqa: A002
    return HoldLine(
        at=at, subject=Subject(node="n1"), id=id, op="placed", owner="maintenance",
        reason=f"maintenance until {until:.0f}: new fans",
        clears_on=ClearsOn.PERSON, until=until,
    )  # fmt: skip


@pytest.fixture
async def there() -> AsyncIterator[tuple[Alertmanager, Silences, Client]]:
    alertmanager = Alertmanager()
    async with TestServer(alertmanager.app()) as server:
        url = f"http://127.0.0.1:{server.port}"
        silences = Silences(AlertmanagerConfig(url=url), None)  # type: ignore[arg-type]  # its loop is not run
        async with Client(url) as client:
            yield alertmanager, silences, client


There = tuple[Alertmanager, Silences, Client]


async def test_a_maintenance_has_one_silence_until_its_end(there: There) -> None:
    alertmanager, silences, client = there
    for _ in range(2):
        await silences.agree(client, {"n1": hold()})
    (made,) = alertmanager.active()
    assert made["matchers"] == [{"name": "node", "value": "n1", "isRegex": False, "isEqual": True}]
    assert str(made["comment"]).startswith(f"{MARK}h1")


async def test_another_end_moves_the_silence(there: There) -> None:
    alertmanager, silences, client = there
    await silences.agree(client, {"n1": hold()})
    await silences.agree(client, {"n1": hold(until=T0 + 7200)})
    (made,) = alertmanager.active()
    assert str(made["endsAt"]).startswith("2026-11-30T0")


async def test_a_silence_moved_more_than_once_moves_again_and_ends_with_its_maintenance(there: There) -> None:
    alertmanager, silences, client = there
    for hours in (1, 2, 3):
        await silences.agree(client, {"n1": hold(until=T0 + hours * 3600, at=T0 + hours)})
        (made,) = alertmanager.active()
        assert datetime.fromisoformat(str(made["endsAt"])).timestamp() == T0 + hours * 3600
    await silences.agree(client, {})
    assert alertmanager.active() == []


async def test_its_end_ends_the_silence_and_leaves_those_of_people(there: There) -> None:
    alertmanager, silences, client = there
    await silences.agree(client, {"n1": hold()})
    alertmanager.silences["theirs"] = {"id": "theirs", "comment": "mine", "createdBy": "ada", "matchers": [],
                                       "endsAt": "2026-12-30T00:00:00Z", "status": {"state": "active"}}  # fmt: skip
    await silences.agree(client, {})
    assert [each["id"] for each in alertmanager.active()] == ["theirs"]


async def test_a_silence_that_a_person_ended_is_not_made_anew(there: There) -> None:
    alertmanager, silences, client = there
    await silences.agree(client, {"n1": hold()})
    alertmanager.silences["s0"]["status"] = {"state": "expired"}
    await silences.agree(client, {"n1": hold()})
    assert alertmanager.active() == []


async def test_it_is_made_anew_once_the_maintenance_has_another_end(there: There) -> None:
    alertmanager, silences, client = there
    await silences.agree(client, {"n1": hold()})
    alertmanager.silences["s0"]["status"] = {"state": "expired"}
    await silences.agree(client, {"n1": hold(until=T0 + 7200)})
    assert len(alertmanager.active()) == 1
