"""The stream of lines: in order, resumed without a gap, and nobody waits for a slow reader."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from controller.telling import watch as watching
from tests.controller.house import House, Keys, batch, event, house, uuid
from wire.sse import read_stream

Stream = AsyncIterator[tuple[str, str, bytes]]


@contextlib.asynccontextmanager
async def stream(home: House, last: str | None = None) -> AsyncIterator[Stream]:
    headers = {} if last is None else {"Last-Event-ID": last}
    timeout = aiohttp.ClientTimeout(total=20)
    async with home.session.get(home.base + "/api/v1/watch", headers=headers, timeout=timeout) as response:
        assert response.status == 200
        assert (await response.content.readline()) == b": open\n"
        yield read_stream(response)


async def take(lines: Stream, count: int) -> list[tuple[int, str]]:
    found = []
    async for ident, kind, _ in lines:
        found.append((int(ident), kind))
        if len(found) == count:
            return found
    raise AssertionError(f"the stream ended after {found}")


async def test_lines_come_as_they_are_stored(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch())
        async with stream(home) as lines:
            await home.post("agent/batch", batch(event(1), event(2)))
            await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "noise"})
            assert await take(lines, 3) == [(1, "event"), (2, "event"), (3, "hold")]


async def test_reader_that_comes_back_misses_nothing(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1), event(2), event(3)))
        async with stream(home, last="1") as lines:
            assert await take(lines, 2) == [(2, "event"), (3, "event")]
            await home.post("agent/batch", batch(event(4), first=4))
            assert await take(lines, 1) == [(4, "event")]


async def test_reader_comes_back_to_another_process(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1), event(2)))
    async with house(tmp_path, **database) as home, stream(home, last="1") as lines:
        assert await take(lines, 1) == [(2, "event")]


async def test_reader_from_a_newer_database_is_told_of_the_gap(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1)))
        async with stream(home, last="999") as lines:
            assert await take(lines, 1) == [(1, "gap")]


async def test_reader_from_before_the_kept_history_is_told_of_the_gap(tmp_path: Path, database: Keys) -> None:
    from controller.store.prune import prune

    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1), event(2)))
        assert await prune(home.inside.store, before=4e9) > 0
        async with stream(home, last="1") as lines:
            assert await take(lines, 1) == [(2, "gap")]


async def test_wrong_id_is_named(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        status, text, _ = await home.raw("GET", "/api/v1/watch", headers={"Last-Event-ID": "yesterday"})
        assert status == 400
        assert "Last-Event-ID" in text


async def test_slow_reader_is_dropped_and_nobody_waits(
    tmp_path: Path, database: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BACKLOG", 4)
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch())
        host, port = home.base.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(b"GET /api/v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readuntil(b": open\n\n")
        writer.transport.pause_reading()
        number = 1
        async with asyncio.timeout(60):
            while home.inside.watch.readers:
                big = [event(number + each, text="x" * 50_000) for each in range(8)]
                await home.post("agent/batch", batch(*big, first=number))
                number += len(big)
        writer.close()
        metrics = (await home.raw("GET", "/metrics"))[1]
        assert "corral_watch_dropped_total 1.0" in metrics


async def test_stop_of_the_controller_ends_streams(tmp_path: Path, database: Keys) -> None:
    async with contextlib.AsyncExitStack() as stack:
        home = await stack.enter_async_context(house(tmp_path, **database))
        await home.post("agent/batch", batch())
        async with stream(home) as lines:
            home.inside.watch.close()
            with contextlib.suppress(aiohttp.ClientError):
                assert [each async for each in lines] == []
