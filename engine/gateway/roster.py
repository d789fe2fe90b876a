"""Who tells the board which replicas there are: the controller each second, the disk while it is gone.

The file holds the last good list, with the replicas that the controller forgot and that still answer. It is
written when it changes, and a gateway that starts without a controller serves from it.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.gateway.board import Board
from engine.gateway.table import Listed
from vocab.errors import CorralError
from wire.client import Client
from wire.disk import write_durably

log = logging.getLogger(__name__)

POLL_S = 1.0
ANSWER_S = 5.0


class Roster:
    """Keeps the board's list. ``heard`` is told after each poll whether the controller answered."""

    def __init__(self, board: Board, client: Client, path: Path, heard: Callable[[bool], None]) -> None:
        self._board = board
        self._client = client
        self._path = path
        self._heard = heard
        self._on_disk: bytes | None = None
        self._complained = False

    def load(self) -> None:
        """Put the list that is on disk on the board, if there is a readable one.

        That these were ready once is of another time: a fleet that starts again with us has lost nothing yet.
        """
        try:
            raw = self._path.read_bytes()
            known = msgspec.json.decode(raw, type=list[Listed])
            self._board.list(msgspec.structs.replace(listed, ready=False) for listed in known)
        except FileNotFoundError:
            return
        except (OSError, msgspec.DecodeError) as error:
            log.warning("the replica list on disk cannot be read: %s", error, extra={"path": self._path})
            return
        self._on_disk = raw

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(POLL_S)

    async def poll(self) -> None:
        """Ask once; what is known stays known if there is no good answer."""
        try:
            answer = await self._client.call("GET", "/api/v1/replicas", list[Listed], timeout_s=ANSWER_S)
        except (CorralError, msgspec.DecodeError) as error:
            self._heard(False)
            if not self._complained:
                log.warning("no replica list from the controller, the last one stands: %s", error)
            self._complained = True
            return
        if self._complained:
            log.info("the controller answers again")
        self._complained = False
        self._heard(True)
        self._board.list([each for each in answer if not each.observed])
        await self._keep()

    async def _keep(self) -> None:
        listed = sorted((entry.listed for entry in self._board.table.entries.values()), key=lambda each: each.replica)
        raw = msgspec.json.encode(listed)
        if raw == self._on_disk:
            return
        try:
            await asyncio.to_thread(write_durably, self._path, raw)
        except OSError as error:
            log.warning("the replica list cannot be kept on disk: %s", error, extra={"path": self._path})
            return
        self._on_disk = raw
