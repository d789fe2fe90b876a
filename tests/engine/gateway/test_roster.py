"""The list on disk: which replicas there are, and not that any of them is missed."""

from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from engine.gateway.board import Board
from engine.gateway.roster import Roster
from engine.gateway.table import Listed, Standing
from vocab.clock import VirtualClock
from wire.client import Client

KEPT = [
    Listed(replica=f"r{n}", deployment="chat", state="ready", url=f"http://127.0.0.1:{n}", ready=True) for n in (1, 2)
]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """What a gateway knows that has just started with a list on its disk."""
    path = tmp_path / "replicas.json"
    path.write_bytes(msgspec.json.encode(KEPT))
    board = Board(VirtualClock())
    Roster(board, Client("http://127.0.0.1:1"), path, lambda up: None).load()
    return board


def show(board: Board, **standings: Standing) -> None:
    for replica, standing in standings.items():
        board.probed(replica, standing, board.now())


def test_a_fleet_that_starts_again_with_its_gateway_calls_no_panic(board: Board) -> None:
    assert [*board.table.entries] == ["r1", "r2"]
    show(board, r1=Standing.REFUSED, r2=Standing.REFUSED)
    assert not board.routable("chat").panic
    board.list([msgspec.structs.replace(each, state="starting", ready=False) for each in KEPT])
    show(board, r1=Standing.LOADING, r2=Standing.LOADING)
    assert not board.routable("chat").panic


def test_what_has_served_since_is_missed_when_it_goes(board: Board) -> None:
    show(board, r1=Standing.READY, r2=Standing.READY)
    show(board, r1=Standing.REFUSED, r2=Standing.REFUSED)
    assert board.routable("chat").panic


def test_what_the_controller_calls_ready_is_missed_when_it_does_not_answer(board: Board) -> None:
    board.list(KEPT)
    show(board, r1=Standing.REFUSED, r2=Standing.REFUSED)
    assert board.routable("chat").panic


def test_fenced_replicas_are_used_by_a_gateway_that_has_just_started(board: Board) -> None:
    show(board, r1=Standing.FENCED, r2=Standing.REFUSED)
    assert [entry.replica for entry in board.routable("chat").fenced] == ["r1"]


async def test_nothing_is_sent_to_what_was_only_found(tmp_path: Path) -> None:
    found = msgspec.structs.replace(KEPT[1], observed=True)

    async def replicas(_: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode([KEPT[0], found]))

    app = web.Application()
    app.router.add_get("/api/v1/replicas", replicas)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    board = Board(VirtualClock())
    try:
        async with Client(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            await Roster(board, client, tmp_path / "replicas.json", lambda up: None).poll()
    finally:
        await runner.cleanup()
    assert [*board.table.entries] == ["r1"]
