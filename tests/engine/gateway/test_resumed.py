"""Real engines behind a gateway: whatever takes one away in the middle of a stream, its client does not notice."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.gateway.table import Standing
from tests.engine.gateway.stand import Stand
from tests.engine.replica import Replica, events, replica, settings

SAMPLED = {"temperature": 1.0, "max_tokens": 24, "ignore_eos": True, "stream_options": {"include_usage": True}}


class Door:
    """The way to a replica, which can be shut as a death shuts it: at once, for all."""

    def __init__(self, here: Replica) -> None:
        self.here = here
        self._inside = int(here.base.rpartition(":")[2])
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._inside)
        self._open |= {writer, back}
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while some := await source.read(65536):
                to.write(some)
                await to.drain()
        to.close()

    def shut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.transport.abort()


class House:
    """Two engines of one model and the gateway before them; steps happen one by one where ``paced``."""

    def __init__(self, stand: Stand, doors: list[Door]) -> None:
        self.stand = stand
        self.doors = doors

    def door_of(self, answer: Any) -> Door:
        return self.doors[int(answer.headers["x-corral-replica"][1:])]

    def other(self, door: Door) -> Door:
        return self.doors[1 - self.doors.index(door)]

    def resumed(self, reason: str) -> float:
        return self.stand.metric("corral_gateway_streams_resumed_total", deployment="tiny", reason=reason)


@pytest.fixture(scope="module")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.engine.tiny import write_model

    return write_model(tmp_path_factory.mktemp("other") / "model", seed=1)


@contextlib.asynccontextmanager
async def house(stand: Stand, *models: Path) -> AsyncIterator[House]:
    async with contextlib.AsyncExitStack() as stack:
        doors = []
        for number, model in enumerate(models):
            config = settings(model, replica=f"r{number}", canary_s=0.0)
            doors.append(Door(await stack.enter_async_context(replica(config, paced=True))))
            await doors[-1].start()
            stack.callback(doors[-1].shut)
        stand.controller.replicas = [
            {"replica": f"r{number}", "deployment": "tiny", "state": "ready", "url": door.url, "node": "n1"}
            for number, door in enumerate(doors)
        ]
        await stand.controller.start()
        await stand.open()
        await stand.stands(Standing.READY, *(f"r{number}" for number in range(len(doors))))
        yield House(stand, doors)


async def whole(here: House, **wish: Any) -> list[Any]:
    for door in here.doors:
        door.here.pace.free()
    async with here.stand.post("tiny", **wish) as answer:
        return await events(answer)


def told(chunks: list[Any]) -> tuple[str, list[Any], Any]:
    """Text, tokens and the end of a stream, without what two requests never share."""
    choices = [choice for chunk in chunks if chunk != "[DONE]" for choice in chunk["choices"]]
    text = "".join(choice["delta"].get("content", "") for choice in choices)
    usage = [chunk["usage"]["total_tokens"] for chunk in chunks if chunk != "[DONE]" and "usage" in chunk]
    ids = [token for choice in choices for token in choice.get("token_ids", ())]
    return text, ids, (choices[-1]["finish_reason"], usage, chunks[-1])


async def first_line(answer: Any) -> list[Any]:
    """Of a stream. More need not come before the test allows more steps: the tokens of several may share one."""
    while not (line := await answer.content.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    return [msgspec.json.decode(line.removeprefix(b"data: "))]


async def test_a_stream_whose_replica_dies_goes_on_at_the_other_as_if_nothing_had_been(
    stand: Stand, tiny_model: Path
) -> None:
    wish = {**SAMPLED, "stream": True, "seed": 11, "return_token_ids": True}
    async with house(stand, tiny_model, tiny_model) as here:
        for door in here.doors:
            door.here.pace.allow(6)
        async with stand.post("tiny", **wish) as answer:
            begin = await first_line(answer)
            here.door_of(answer).shut()
            here.other(here.door_of(answer)).here.pace.free()
            broken = begin + await events(answer)
        assert here.resumed("lost") == 1
        assert len({chunk["id"] for chunk in broken[:-1]}) == 1
        assert stand.metric("corral_gateway_streams_broken_total", deployment="tiny") == 0
        assert stand.metric("corral_gateway_resume_seconds_count", deployment="tiny") == 1
        assert stand.metric("corral_gateway_in_flight_requests", deployment="tiny", replica="r0") == 0
        assert told(broken) == told(await whole(here, **wish))


async def test_an_unseeded_stream_that_a_drain_cuts_off_goes_on_and_shows_no_ids(
    stand: Stand, tiny_model: Path
) -> None:
    async with house(stand, tiny_model, tiny_model) as here:
        for door in here.doors:
            door.here.pace.allow(6)
        async with stand.post("tiny", **SAMPLED, stream=True) as answer:
            begin = await first_line(answer)
            left = here.door_of(answer)
            left.here.service.drain(leave=True, ttl_s=0.0, reason="late")
            for door in here.doors:
                door.here.pace.free()
            chunks = begin + await events(answer)
        text, ids, (finish, [usage], done) = told(chunks)
        assert here.resumed("cut_off") == 1
        assert (ids, finish, done, usage > 24) == ([], "length", "[DONE]", True)
        assert text
        assert all("prompt_token_ids" not in chunk for chunk in chunks[:-1])


async def test_a_replica_that_takes_nothing_new_keeps_the_streams_that_it_feeds_and_loses_those_that_it_does_not(
    stand: Stand, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.gateway.upstream.SILENT_S", 0.2)
    async with house(stand, tiny_model, tiny_model) as here:
        for door in here.doors:
            door.here.pace.allow(5)
        async with stand.post("tiny", **SAMPLED, stream=True, return_token_ids=True) as answer:
            begin = await first_line(answer)
            stuck = here.door_of(answer)
            stuck.here.service.gate.fence()
            here.other(stuck).here.pace.free()
            chunks = begin + await events(answer)
        assert here.resumed("stuck") == 1
        assert told(chunks)[2][0] == "length"
        await stuck.here.until(lambda: stuck.here.service.gate.open_requests == 0)
        stuck.here.pace.free()


async def test_no_replica_of_another_model_goes_on(stand: Stand, tiny_model: Path, other_model: Path) -> None:
    stand.hold_s = 0.2
    async with house(stand, tiny_model, other_model) as here:
        for door in here.doors:
            door.here.pace.allow(5)
        async with stand.post("tiny", **SAMPLED, stream=True) as answer:
            await first_line(answer)
            here.door_of(answer).shut()
            here.other(here.door_of(answer)).here.pace.free()
            *_, last = await events(answer)
        assert last["error"]["code"] == "stream_broken"
        assert stand.metric("corral_gateway_streams_broken_total", deployment="tiny") == 1


async def test_a_stream_on_which_two_replicas_died_is_not_sent_to_a_third(stand: Stand, tiny_model: Path) -> None:
    async with house(stand, tiny_model, tiny_model, tiny_model) as here:
        for door in here.doors:
            door.here.pace.allow(3)
        async with stand.post("tiny", **SAMPLED, stream=True, return_token_ids=True) as answer:
            await first_line(answer)
            here.door_of(answer).shut()
            await stand.until(lambda: here.resumed("lost") == 1, "another goes on")
            [second] = [
                door for door in here.doors if door.here.service.gate.open_requests and door is not here.door_of(answer)
            ]
            second.shut()
            *_, last = await events(answer)
        assert (last["error"]["code"], here.resumed("lost")) == ("stream_broken", 1)
        assert "not sent a third time" in last["error"]["message"]
