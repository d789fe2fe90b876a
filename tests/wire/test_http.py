"""Server and client set-up against each other, over a real socket."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from vocab.errors import ConfigError, InputError, Refused, StaleOrder, Unreachable
from vocab.metrics import GATEWAY
from wire.client import Client
from wire.exposition import Exposition
from wire.server import decode, listen, make_app, read_token, reply
from wire.sse import open_stream, read_stream, send

TOKEN = "a-token-for-the-test"


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


async def fail(request: web.Request) -> web.Response:
    raise {
        "input": InputError("key x is wrong"),
        "stale": StaleOrder("token 1.2 is old"),
        "bug": ValueError("oops"),
        "busy": Unreachable("the store is busy"),
    }[request.match_info["how"]]


async def whose(request: web.Request) -> web.Response:
    return reply({"shown": request.headers.get("Authorization")})


async def count(request: web.Request) -> web.StreamResponse:
    stream = await open_stream(request)
    for number in range(3):
        await send(stream, b'{"n":%d}' % number, event="change", id=str(number))
    return stream


async def echo(request: web.Request) -> web.Response:
    return reply({"n": decode(await request.read(), dict[str, int])["n"]})


async def stream(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for number in range(3):
        await answer.write(b'{"n":%d}\n' % number)
    if "cut" in request.query:
        await answer.write(b'{"n":')
    if "broken" in request.query and request.transport is not None:
        request.transport.abort()
    return answer


@pytest.fixture
async def address() -> AsyncIterator[str]:
    app = make_app(ready=lambda: (False, "loading"), metrics=Exposition(GATEWAY), token=TOKEN)
    app.router.add_get("/fail/{how}", fail)
    app.router.add_get("/count", count)
    app.router.add_post("/echo", echo)
    app.router.add_post("/stream", stream)
    app.router.add_post("/fail/{how}", fail)
    port = free_port()
    runner = await listen(app, f"127.0.0.1:{port}")
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
async def client(address: str) -> AsyncIterator[Client]:
    async with Client(address, token=TOKEN) as client:
        yield client


async def test_a_body_goes_there_and_back(client: Client) -> None:
    assert await client.call("POST", "/echo", dict[str, int], {"n": 3}) == {"n": 3}


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [("input", InputError, "key x"), ("stale", Refused, "token"), ("bug", Unreachable, "internal error")],
)
async def test_an_error_keeps_its_kind_across_the_wire(
    client: Client, how: str, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        await client.call("GET", f"/fail/{how}", Any)


async def test_a_malformed_body_is_the_senders_fault(client: Client) -> None:
    with pytest.raises(InputError, match="body is wrong"):
        await client.call("POST", "/echo", Any, {"n": "three"})


async def test_a_dead_peer_is_unreachable() -> None:
    async with Client(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(Unreachable, match="does not answer"):
            await client.call("GET", "/healthz", Any)


async def test_without_the_token_only_health_is_told(address: str) -> None:
    async with aiohttp.ClientSession() as session:
        for path, status in (("/healthz", 200), ("/readyz", 503), ("/metrics", 401), ("/echo", 401)):
            async with session.get(address + path) as response:
                assert response.status == status, path


async def test_metrics_are_text_that_prometheus_reads(client: Client) -> None:
    async with client.session.get(client.base + "/metrics") as response:
        assert response.status == 200
        assert "# TYPE corral_gateway_build_info gauge" in await response.text()


async def test_a_taken_port_is_named_with_what_to_do(address: str) -> None:
    app = make_app(ready=lambda: (True, ""), metrics=Exposition(()))
    with pytest.raises(ConfigError, match=r"cannot be used.*choose another port"):
        await listen(app, address.removeprefix("http://"))


async def test_other_machines_are_let_in_only_with_token_and_tls() -> None:
    app = make_app(ready=lambda: (True, ""), metrics=Exposition(()))
    with pytest.raises(ConfigError, match="token_file, tls_cert"):
        await listen(app, f"0.0.0.0:{free_port()}")


async def test_a_stream_of_events_arrives_in_order_with_ids(client: Client) -> None:
    async with client.session.get(client.base + "/count") as response:
        events = [event async for event in read_stream(response)]
    assert events == [(str(number), "change", b'{"n":%d}' % number) for number in range(3)]


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret\n")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod"):
        read_token(path)
    path.chmod(0o600)
    assert read_token(path) == "secret"


async def test_a_busy_server_says_when_to_come_again(client: Client) -> None:
    with pytest.raises(Unreachable, match="the store is busy") as caught:
        await client.call("GET", "/fail/busy", Any)
    assert caught.value.retry_after_s == 2.0


async def test_a_process_that_is_not_ready_is_told_with_its_reason(client: Client) -> None:
    with pytest.raises(Unreachable, match=r"answered 503: .*loading"):
        await client.call("GET", "/readyz", Any)


async def test_lines_come_one_by_one(client: Client) -> None:
    assert [line async for line in client.lines("POST", "/stream", dict[str, int])] == [{"n": 0}, {"n": 1}, {"n": 2}]


@pytest.mark.parametrize(("how", "error"), [("input", InputError), ("stale", Refused), ("bug", Unreachable)])
async def test_lines_that_are_refused_say_why(client: Client, how: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        _ = [line async for line in client.lines("POST", f"/fail/{how}", dict[str, int])]


async def test_lines_that_break_off_are_no_end(client: Client) -> None:
    with pytest.raises(Unreachable):
        _ = [line async for line in client.lines("POST", "/stream?broken", dict[str, int])]


async def test_a_line_that_was_cut_is_an_answer_that_broke_off(client: Client) -> None:
    with pytest.raises(Unreachable, match="broke off its answer; ask again"):
        async for _ in client.lines("POST", "/stream?cut=1", dict[str, int], None, silence_s=10.0):
            pass


async def test_a_password_in_an_address_is_shown_to_its_server_and_told_to_nobody() -> None:
    app = web.Application()
    app.router.add_get("/under/whose", whose)
    async with TestServer(app) as server, Client(f"http://ada:pass@127.0.0.1:{server.port}/under/") as client:
        answer = await client.call("GET", "/whose", dict[str, str])
        assert answer == {"shown": "Basic YWRhOnBhc3M="}
        with pytest.raises(Refused) as refused:
            await client.call("GET", "/none", dict[str, str])
        assert client.base == f"http://127.0.0.1:{server.port}/under"
    assert "pass" not in str(refused.value)
