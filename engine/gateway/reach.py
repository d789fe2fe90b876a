"""Tell the controller which nodes this gateway reaches: a silent node is lost only if others cannot reach it either.

A node is reached if a replica of it answers anything, and is not if none of its replicas has done so lately.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping

from engine.gateway.board import Board
from engine.gateway.table import ANSWERS, Entry, Standing
from vocab.errors import CorralError
from wire.client import Client

log = logging.getLogger(__name__)

EVERY_S = 5.0  # a third of the silence after which a node is unknown
ANSWER_S = 3.0


def reached(entries: Mapping[str, Entry]) -> dict[str, bool]:
    """The nodes of which something can be said, and whether they are reached."""
    shown: dict[str, set[Standing]] = defaultdict(set)
    for entry in entries.values():
        if entry.listed.node and entry.url:
            shown[entry.listed.node].add(entry.standing)
    answers = {node: bool(standings & ANSWERS) for node, standings in shown.items()}
    return {node: ok for node, ok in answers.items() if ok or Standing.UNSEEN not in shown[node]}


class Reach:
    """Reports under ``name``; gateways of one machine share it, for what one of them cannot reach none can."""

    def __init__(self, board: Board, client: Client, name: str) -> None:
        self._board = board
        self._client = client
        self._name = name
        self._complained = False

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.report()

    async def report(self) -> None:
        """Tell once what is known now. Nobody listening is no loss: the next report says it again."""
        nodes = reached(self._board.table.entries)
        if not nodes:
            return
        body = {"by": self._name, "nodes": nodes}
        try:
            await self._client.call("POST", "/api/v1/gateway/reach", object, body, timeout_s=ANSWER_S)
        except CorralError as error:
            if not self._complained:
                log.info("the controller does not hear which nodes are reached: %s", error)
            self._complained = True
        else:
            self._complained = False
