"""Ask each replica twice a second whether it is ready, and put the answer on the board."""

import asyncio

import aiohttp
import msgspec

from engine.gateway.board import Board
from engine.gateway.table import Listed, Standing

EVERY_S = 0.5
ANSWER_S = 1.0  # late twice a second is slow; late for table.SILENT_S is gone

NO_DOOR = 404

_REASONS = {
    "loading": Standing.LOADING,
    "fenced": Standing.FENCED,
    "draining": Standing.DRAINING,
}


class _Ready(msgspec.Struct):
    ready: bool = False
    reason: str = ""
    replica: str | None = None
    resumes: str = ""


def standing_of(reason: str) -> Standing:
    """What a refusal with this reason or error code says of a replica."""
    return _REASONS.get(reason, Standing.UNWELL)


class Shown(msgspec.Struct, frozen=True):
    """What a probe found; see table.Entry."""

    standing: Standing
    resumes: str = ""


def judge(status: int, raw: bytes, replica: str) -> Shown:
    """What an answer of /ready says. One that names another replica is not an answer of this one."""
    try:
        body = msgspec.json.decode(raw, type=_Ready)
    except msgspec.DecodeError:
        body = _Ready(ready=status == 200)
    if body.replica is not None and body.replica != replica:
        return Shown(Standing.REFUSED)
    return Shown(Standing.READY if status == 200 else standing_of(body.reason), body.resumes)


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

    def _listed(self, replica: str) -> Listed | None:
        entry = self._board.table.entries.get(replica)
        return entry.listed if entry is not None else None

    async def _watch(self, session: aiohttp.ClientSession, replica: str, url: str) -> None:
        while True:
            began = self._board.now()
            shown = await _ask(session, url, replica) or await _ask_health(session, url, self._listed(replica))
            self._board.probed(replica, shown.standing, began, shown.resumes)
            await asyncio.sleep(max(0.0, EVERY_S - (self._board.now() - began)))


async def _ask(session: aiohttp.ClientSession, url: str, replica: str) -> Shown | None:
    """What it says of its readiness; None if it is an engine without such a door."""
    try:
        async with session.get(f"{url}/ready", timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as response:
            if response.status == NO_DOOR:
                return None
            return judge(response.status, await response.read(), replica)
    except TimeoutError:
        return Shown(Standing.SILENT)
    except (aiohttp.ClientError, OSError, ValueError):  # ValueError: the address is none
        return Shown(Standing.REFUSED)


async def _ask_health(session: aiohttp.ClientSession, url: str, listed: Listed | None) -> Shown:
    """Of another engine its /health, which tells neither of a fence nor of a drain: that its agent knows."""
    try:
        async with session.get(f"{url}/health", timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as response:
            status = response.status
    except TimeoutError:
        return Shown(Standing.SILENT)
    except (aiohttp.ClientError, OSError, ValueError):
        return Shown(Standing.REFUSED)
    return Shown(of_health(status, listed))


def of_health(status: int, listed: Listed | None) -> Standing:
    """What a status of /health says, with what the controller lists."""
    if status != 200:
        return Standing.UNWELL
    if listed is not None and listed.state == "draining":
        return Standing.DRAINING
    return Standing.READY if listed is None or listed.admitting else Standing.FENCED
