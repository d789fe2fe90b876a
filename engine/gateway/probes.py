"""Ask each replica twice a second whether it is ready, and put the answer on the board."""

import asyncio

import aiohttp
import msgspec

from engine.gateway.board import Board
from engine.gateway.table import Standing

EVERY_S = 0.5
ANSWER_S = 1.0  # late twice a second is slow; late for table.SILENT_S is gone

_REASONS = {
    "loading": Standing.LOADING,
    "fenced": Standing.FENCED,
    "draining": Standing.DRAINING,
}


class _Ready(msgspec.Struct):
    ready: bool = False
    reason: str = ""
    replica: str | None = None


def standing_of(reason: str) -> Standing:
    """What a refusal with this reason or error code says of a replica."""
    return _REASONS.get(reason, Standing.UNWELL)


def judge(status: int, raw: bytes, replica: str) -> Standing:
    """What an answer of /ready says. One that names another replica is not an answer of this one."""
    try:
        body = msgspec.json.decode(raw, type=_Ready)
    except msgspec.DecodeError:
        body = _Ready(ready=status == 200)
    if body.replica is not None and body.replica != replica:
        return Standing.REFUSED
    if status == 200:
        return Standing.READY
    return standing_of(body.reason)


class Probes:
    """One task a replica, for as long as the board knows it."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Probe all that the board knows until cancelled."""
        # A new connection each time, so that an answer always comes from who listens there now.
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            try:
                while True:
                    self._reconcile(session)
                    await self._board.change()
            finally:
                for task in self._tasks.values():
                    task.cancel()
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _reconcile(self, session: aiohttp.ClientSession) -> None:
        known = {(name, entry.url) for name, entry in self._board.table.entries.items() if entry.url}
        for gone in self._tasks.keys() - known:
            self._tasks.pop(gone).cancel()
        for replica, url in known - self._tasks.keys():
            self._tasks[replica, url] = asyncio.create_task(self._watch(session, replica, url))

    async def _watch(self, session: aiohttp.ClientSession, replica: str, url: str) -> None:
        while True:
            began = self._board.now()
            standing = await _ask(session, url, replica)
            self._board.probed(replica, standing, began)
            await asyncio.sleep(max(0.0, EVERY_S - (self._board.now() - began)))


async def _ask(session: aiohttp.ClientSession, url: str, replica: str) -> Standing:
    try:
        async with session.get(f"{url}/ready", timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as response:
            return judge(response.status, await response.read(), replica)
    except TimeoutError:
        return Standing.SILENT
    except (aiohttp.ClientError, OSError, ValueError):  # ValueError: the address is none
        return Standing.REFUSED
