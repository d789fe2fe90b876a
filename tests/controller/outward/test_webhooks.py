"""Webhooks: one notice a change of state, signed, at least once over deaths and outages, and nobody waits for them."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from controller.deciding.mind import real_core
from controller.notify.config import WebhookConfig
from controller.notify.notice import Notice, What
from controller.notify.template import as_alertmanager, load
from tests.controller.house import event, house
from tests.controller.node import Node
from vocab.errors import ConfigError, InputError

SECRET = "a shared secret"
NOTICE = Notice(
    key="7-ab",
    seq=7,
    at="2026-11-30T00:00:00.000000Z",
    what=What.INCIDENT_OPENED,
    subject="GPU-1",
    incident="i-1",
    code="xid:79",
    severity="critical",
    summary='it said "79"',
    line={"id": "i-1"},
)


class Receiver:
    """Takes notices; ``answers``: the statuses of the next ones, then 200."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[int] = []
        self.tried = 0
        self.taken: list[tuple[dict[str, str], bytes]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.tried += 1
        status = self.answers.pop(0) if self.answers else 200
        if status < 300:
            self.taken.append((dict(request.headers), await request.read()))
        return web.Response(status=status)

    async def until(self, count: int) -> list[dict[str, Any]]:
        async with asyncio.timeout(60):
            while len(self.taken) < count:
                await asyncio.sleep(0.02)
        return [msgspec.json.decode(body) for _, body in self.taken]


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    app = web.Application()
    app.router.add_post("/hook", made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port, *_ = runner.addresses[0]
    made.url = f"http://{host}:{port}/hook"
    try:
        yield made
    finally:
        await runner.cleanup()


def hook(made: Receiver, **more: Any) -> dict[str, Any]:
    return {"make_core": real_core, "webhooks": (WebhookConfig(name="tickets", url=made.url, **more),)}


async def begun(home: Any) -> Node:
    """A node that has joined, once the webhook knows where it begins."""
    node = Node(home)
    await node.send()
    await node.settle()
    async with asyncio.timeout(60):
        while "webhook:tickets" not in await _counters(home):
            await asyncio.sleep(0.02)
    return node


async def _counters(home: Any) -> dict[str, int]:
    from controller.store.tables import counters

    async with home.inside.store.reading() as connection:
        return {row.name: row.value for row in await connection.execute(counters.select())}


async def test_a_fault_is_told_once_a_change_signed_and_with_its_key(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    async with receiver() as made, house(tmp_path / "c", **hook(made, secret_file=str(secret))) as home:
        node = await begun(home)
        await node.send(event(1, gpu=0))
        told = await made.until(2)
        assert [each["what"] for each in told[:2]] == ["incident_opened", "hold_placed"]
        assert len({each["key"] for each in told}) == len(told)
        headers, body = made.taken[0]
        assert headers["Idempotency-Key"] == told[0]["key"]
        at, signed = (part.partition("=")[2] for part in headers["Corral-Signature"].split(","))
        expected = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        assert hmac.compare_digest(signed, expected)


async def test_a_receiver_that_is_away_delays_no_decision_and_misses_nothing_over_a_restart(tmp_path: Path) -> None:
    async with receiver() as made:
        made.answers = [503] * 200
        async with house(tmp_path, **hook(made, events=(What.INCIDENT_OPENED,))) as home:
            node = await begun(home)
            await node.send(event(1, gpu=0))
            assert [hold["owner"] for hold in await home.get("holds")] == ["policy"]
        assert made.taken == []
        made.answers = []
        async with house(tmp_path, **hook(made, events=(What.INCIDENT_OPENED,))) as home:
            (told,) = await made.until(1)
            assert (told["what"], told["code"]) == ("incident_opened", "xid:79")


async def test_what_a_receiver_does_not_take_keeps_no_other_back(tmp_path: Path) -> None:
    async with receiver() as made, house(tmp_path, **hook(made)) as home:
        made.answers = [400]
        node = await begun(home)
        await node.send(event(1, gpu=0))
        told = await made.until(1)
        assert told[0]["what"] == "hold_placed"
        _, metrics, _ = await home.raw("GET", "/metrics")
        assert 'corral_webhook_notices_total{outcome="refused",webhook="tickets"} 1.0' in metrics


def test_a_template_makes_a_ticket_and_can_reach_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "ticket.j2"
    path.write_text('{"title": {{ notice.summary | tojson }}, "gpu": {{ notice.subject | tojson }}}')
    assert msgspec.json.decode(load(str(path))(NOTICE)) == {"title": 'it said "79"', "gpu": "GPU-1"}
    for escape in (
        "{{ notice.__class__.__mro__ }}",
        "{{ ''.__class__.__subclasses__() }}",
        "{% include '/etc/passwd' %}",
        "{{ notice.nothing }}",
        "{{ 'x' * 999999999999 }}",
        "{% for i in range(99999999) %}x{% endfor %}",
    ):
        path.write_text(escape)
        with pytest.raises(InputError):
            load(str(path))(NOTICE)


def test_a_template_that_is_wrong_is_found_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "ticket.j2"
    path.write_text("{{ notice.summary")
    with pytest.raises(ConfigError, match="line 1"):
        load(str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        load(str(tmp_path / "none"))


def test_in_alertmanagers_form_an_incident_fires_until_it_is_closed() -> None:
    firing = msgspec.json.decode(as_alertmanager(NOTICE))
    over = msgspec.json.decode(as_alertmanager(msgspec.structs.replace(NOTICE, what=What.INCIDENT_CLOSED)))
    assert (firing["version"], firing["status"], over["status"]) == ("4", "firing", "resolved")
    assert firing["alerts"][0]["labels"] == over["alerts"][0]["labels"]
    assert over["alerts"][0]["endsAt"] == NOTICE.at
