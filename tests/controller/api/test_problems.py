"""Every refusal has the same form and says what to do next, whoever refuses: the router, the limits or we."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.api.route import Route, add_routes
from controller.door import limits
from controller.telling import watch
from tests.controller.house import batch, house
from vocab.clock import VirtualClock
from vocab.problems import KINDS, Problem
from wire.server import listen, make_app

JSON = {"Content-Type": "application/json"}
ORDER = b'{"reason": "test"}'


@pytest.mark.parametrize(
    ("method", "path", "more", "status", "said"),
    [
        ("GET", "/api/v1/nothing", {}, 404, "nothing is served at /api/v1/nothing"),
        ("GET", "/api/v1/gpus/GPU-none", {}, 404, "/api/v1/gpus lists them"),
        ("PUT", "/api/v1/pause", {"data": ORDER, "headers": JSON}, 405, "Method Not Allowed"),
        ("GET", "/api/v1/events?limit=0", {}, 400, "$.limit"),
        ("GET", "/api/v1/incidents?state=null", {}, 400, "`state` is 'null'; leave it out"),
        ("POST", "/api/v1/pause", {"data": b"{", "headers": JSON}, 400, "body is wrong"),
        ("POST", "/api/v1/pause", {"data": ORDER}, 415, "Content-Type: application/json"),
        ("POST", "/api/v1/pause", {"data": b" " * 300_000, "headers": JSON}, 413, "262144"),
        ("POST", "/api/v1/approvals", {"data": ORDER, "headers": JSON}, 400, "action"),
        ("GET", "/api/v1/fleet", {"headers": {"Host": "evil.example"}}, 403, "loopback"),
    ],
)
async def test_a_refusal_is_a_problem(
    tmp_path: Path, method: str, path: str, more: dict[str, Any], status: int, said: str
) -> None:
    async with house(tmp_path) as home:
        answered, text, headers = await home.raw(method, path, **more)
        problem = msgspec.json.decode(text, type=Problem)
        assert (answered, problem.status) == (status, status)
        assert headers["Content-Type"].startswith("application/problem+json")
        assert said in problem.detail
        assert (problem.title, problem.next) == (KINDS[status].title, KINDS[status].next)
        assert problem.error.message == problem.detail
        assert ("Allow" in headers) == (status == 405)


async def test_a_batch_may_be_larger_than_an_order(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        body = msgspec.json.encode(batch()) + b" " * 300_000
        assert (await home.raw("POST", "/api/v1/agent/batch", data=body, headers=JSON))[0] == 200


async def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    async with house(tmp_path, clock=clock) as home, asyncio.timeout(60):
        row = Route(method="POST", path="/slow", name="slow", summary="", run=home.get, body=dict, answer_s=0.1)
        app = make_app(ready=lambda: (True, ""), metrics=home.inside.export)
        add_routes(app, [row])
        runner = await listen(app, "127.0.0.1:0")
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert b" 503 " in await reader.readline()
        writer.close()
        await runner.cleanup()


async def test_one_that_runs_wild_is_told_to_wait_and_others_are_not(tmp_path: Path) -> None:
    clock = VirtualClock(1_796_000_000.0)
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    async with house(tmp_path / "state", clock=clock, token_file=str(token), requests_per_s=10.0) as home:
        made = await home.post("tokens", {"name": "other", "role": "viewer"})
        statuses = [(await home.raw("GET", "/api/v1/holds"))[0] for _ in range(int(limits.BURST))]
        assert statuses[-1] == 429
        status, text, headers = await home.raw("GET", "/api/v1/holds")
        assert (status, headers["Retry-After"], "more than 10 requests a second" in text) == (429, "1", True)
        other = {"Authorization": f"Bearer {made['secret']}"}
        assert (await home.raw("GET", "/api/v1/holds", headers=other))[0] == 200
        clock.advance(1.0)
        assert (await home.raw("GET", "/api/v1/holds"))[0] == 200


async def test_streams_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "STREAMS", 0)
    async with house(tmp_path) as home:
        status, _, headers = await home.raw("GET", "/api/v1/watch")
        assert (status, headers["Retry-After"]) == (429, "10")


async def test_bytes_that_are_no_text_are_no_fault_of_ours(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    async with house(tmp_path / "state", token_file=str(token)) as home:
        host, port = home.base.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /api/v1/fleet HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")
        assert b" 401 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize(
    "sent", [b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 9000), b"this is no HTTP\r\n\r\n"]
)
async def test_what_is_refused_before_we_see_it_is_a_problem_too(tmp_path: Path, sent: bytes) -> None:
    async with house(tmp_path) as home:
        host, port = home.base.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        async with asyncio.timeout(60):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        assert b" 400 " in head.splitlines()[0]
        assert b"application/problem+json" in head
        problem = msgspec.json.decode(body, type=Problem)
        assert (problem.status, problem.title, bool(problem.detail)) == (400, KINDS[400].title, True)
