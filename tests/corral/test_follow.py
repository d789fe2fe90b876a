"""The stream of lines is followed over a broken connection: nothing twice, nothing left out."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from corral.follow import follow
from vocab.errors import Refused
from vocab.lines import NoteLine, Subject
from wire import sse


def note(number: int) -> bytes:
    return msgspec.json.encode(NoteLine(at=0.0, subject=Subject(), code=f"n{number}", text=""))


class Stream:
    """Sends three lines a connection, from after the last id that it is shown, then breaks off."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def watch(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers["Last-Event-ID"])
        answer = await sse.open_stream(request)
        last = int(self.asked[-1])
        for number in range(last + 1, last + 4):
            await sse.send(answer, note(number), event="note", id=str(number))
        assert request.transport is not None
        await asyncio.sleep(0)
        request.transport.close()
        return answer


async def test_a_broken_stream_is_gone_on_with_from_where_it_broke() -> None:
    stream = Stream()
    app = web.Application()
    app.router.add_get("/api/v1/watch", stream.watch)
    codes: list[str] = []
    async with TestServer(app) as server, asyncio.timeout(30):
        async for line in follow(f"http://127.0.0.1:{server.port}", 10):
            assert isinstance(line, NoteLine)
            codes.append(line.code)
            if len(codes) == 7:
                break
    assert codes == [f"n{number}" for number in range(11, 18)]
    assert stream.asked == ["10", "13", "16"]


async def test_a_token_that_may_not_look_ends_it(tmp_path: Path) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=401)

    app = web.Application()
    app.router.add_get("/api/v1/watch", refuse)
    async with TestServer(app) as server:
        with pytest.raises(Refused, match="CORRAL_TOKEN_FILE"):
            await anext(follow(f"http://127.0.0.1:{server.port}", 0))
