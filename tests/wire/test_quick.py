"""What is answered where it is read, and what is left to aiohttp: on one connection, in order, with whole bodies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from multidict import CIMultiDictProxy

from wire.quick import MOST_BYTES, Runner, is_tried

READ_S = 60.0


class Even:
    """Answers bodies of an even length, and breaks where it is told to."""

    method, path = "POST", "/beat"

    def answer(self, headers: CIMultiDictProxy[str], body: bytes, _: asyncio.Transport) -> bytes | None:
        if "X-Breaks" in headers:
            raise RecursionError
        return b"quick" if len(body) % 2 == 0 and "X-Slow" not in headers else None


BEGUN = web.AppKey[asyncio.Event]("begun")  # a request has gone the long way


async def slow(request: web.Request) -> web.Response:
    request.app[BEGUN].set()
    return web.Response(body=b"slow %d" % len(await request.read()))


class Peer:
    """A client that sends bytes as they are."""

    def __init__(self, begun: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.begun = begun
        self._reader = reader
        self.writer = writer

    async def answer(self) -> bytes:
        async with asyncio.timeout(READ_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
            return await self._reader.readexactly(length)

    async def say(self, raw: bytes) -> bytes:
        self.writer.write(raw)
        return await self.answer()


@asynccontextmanager
async def peer() -> AsyncIterator[Peer]:
    app = web.Application(client_max_size=4 * MOST_BYTES)
    app.router.add_route("*", "/{any}", slow)
    app[BEGUN] = asyncio.Event()
    runner = Runner(app, quick=Even(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        found = Peer(app[BEGUN], *await asyncio.open_connection(*runner.addresses[0][:2]))
        assert await found.say(post(b"", path="/first")) == b"slow 0"  # its task waits for the next request now
        yield found
        found.writer.close()
    finally:
        await runner.cleanup()


def post(body: bytes, more: str = "", *, path: str = "/beat", version: str = "1.1") -> bytes:
    return f"POST {path} HTTP/{version}\r\nHost: x\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_both_ways_take_turns_on_one_connection() -> None:
    async with peer() as it:
        said = [await it.say(post(b"x" * size)) for size in (2, 3, 4, 5, 4)]
        assert said == [b"quick", b"slow 3", b"quick", b"slow 5", b"quick"]


@pytest.mark.parametrize(
    "raw",
    [
        post(b"xx", path="/beat?x=1"),
        post(b"xx", path="/other"),
        post(b"xx", "X-Slow: 1\r\n"),
        post(b"xx", "X-Breaks: 1\r\n"),
        post(b"xx", "Connection: close\r\n"),
        post(b"xx", version="1.0").replace(b"Host", b"Connection: keep-alive\r\nHost"),
        post(b"xx").replace(b"POST", b"PUT"),
        post(b"", "Transfer-Encoding: chunked\r\n").replace(b"Content-Length: 0\r\n", b"") + b"2\r\nxx\r\n0\r\n\r\n",
    ],
)
async def test_what_is_not_as_usual_goes_the_long_way(raw: bytes) -> None:
    async with peer() as it:
        assert await it.say(raw) == b"slow 2"


async def test_what_is_large_goes_the_long_way() -> None:
    async with peer() as it:
        size = MOST_BYTES + 2
        assert await it.say(post(b"x" * size)) == b"slow %d" % size


async def test_a_body_that_comes_in_pieces_goes_the_long_way() -> None:
    async with peer() as it:
        whole = post(b"xxxx")
        it.begun.clear()
        it.writer.write(whole[:-2])
        async with asyncio.timeout(READ_S):
            await it.begun.wait()
        assert await it.say(whole[-2:]) == b"slow 4"


async def test_no_answer_overtakes_another() -> None:
    async with peer() as it:
        it.writer.write(post(b"xxx") + post(b"xx") + post(b"xxxxx"))
        assert [await it.answer() for _ in range(3)] == [b"slow 3", b"slow 2", b"slow 5"]
        assert await it.say(post(b"xx")) == b"quick"


async def test_no_request_is_another_ones_body() -> None:
    async with peer() as it:
        hidden = post(b"xx")
        assert await it.say(post(hidden, "X-Slow: 1\r\n")) == b"slow %d" % len(hidden)
        assert await it.say(post(b"xx")) == b"quick"


def test_quick_answers_are_given_with_the_aiohttp_that_is_installed_and_not_with_any_other() -> None:
    assert is_tried()
    assert not is_tried("3.15.0")
    assert not is_tried("3.1.4")
