"""The agent's own door on its node: a socket for whom its file lets in, and none where none can be had."""

import os
import stat
import sys
from pathlib import Path

from aiohttp import web

from agent.door import MODE, NAME, bound, open_door
from wire.client import Client


def app() -> web.Application:
    async def node(_: web.Request) -> web.Response:
        return web.json_response({"node": "n1"})

    made = web.Application()
    made.router.add_get("/api/v1/node", node)
    return made


async def test_who_may_write_to_the_file_is_answered_without_a_token(tmp_path: Path) -> None:
    runner = await open_door(app(), tmp_path)
    assert runner is not None
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o660
    async with Client("http://agent", socket=str(tmp_path / NAME)) as client:
        assert await client.call("GET", "/api/v1/node", dict[str, str]) == {"node": "n1"}
    await runner.cleanup()


def test_at_no_moment_is_the_socket_open_to_others(tmp_path: Path) -> None:
    path, modes = tmp_path / NAME, set()

    def look(*_: object) -> None:
        if path.exists():
            modes.add(stat.S_IMODE(path.stat().st_mode))

    before = os.umask(0)
    sys.setprofile(look)
    try:
        door = bound(path)
    finally:
        sys.setprofile(None)
        os.umask(before)
    door.close()
    assert modes == {MODE}


async def test_a_socket_that_a_killed_agent_left_is_replaced(tmp_path: Path) -> None:
    first = await open_door(app(), tmp_path)
    second = await open_door(app(), tmp_path)
    assert second is not None
    async with Client("http://agent", socket=str(tmp_path / NAME)) as client:
        assert await client.call("GET", "/api/v1/node", dict[str, str]) == {"node": "n1"}
    for runner in (first, second):
        assert runner is not None
        await runner.cleanup()


async def test_a_path_that_is_too_long_is_no_reason_not_to_run(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    assert await open_door(app(), deep) is None
