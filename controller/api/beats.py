"""Heartbeats that tell nothing new, answered where they are read (``wire.quick``).

All that middlewares and route look at is looked at here, too. Where anything is not as usual, there is no answer from
here: the report goes the long way, on which it is refused in full words, or waits for what it leads to.
"""

import asyncio

import msgspec
from aiohttp import web
from multidict import CIMultiDictProxy

from controller.api.agents import BATCH, Agents
from controller.door.access import Access
from controller.door.guard import is_local
from controller.door.limits import Rates
from vocab.errors import InputError
from vocab.roles import NODES


class Beats:
    """The answers. ``local_only``: as ``controller.door.guard`` takes it."""

    method = "POST"
    path = BATCH

    def __init__(self, agents: Agents, access: Access, rates: Rates, *, local_only: bool) -> None:
        self._agents = agents
        self._access = access
        self._rates = rates
        self._local_only = local_only

    def answer(self, headers: CIMultiDictProxy[str], body: bytes, transport: asyncio.Transport) -> bytes | None:
        """A BatchAck as JSON, or None."""
        if headers.get("Content-Type") != "application/json" or "Origin" in headers:
            return None
        if self._local_only and not is_local(headers.get("Host", "")):
            return None
        caller = self._access.by_header(headers.get("Authorization", ""))
        if caller is None or caller.role not in NODES:
            return None
        try:
            self._access.check_certificate(caller, transport)
            batch = self._agents.heartbeat(body)
            if batch is None:
                return None
            caller.must_be(batch.node)
            address, *_ = transport.get_extra_info("peername") or ("",)
            self._access.count(caller, address, self._rates)
        except (InputError, web.HTTPException):
            return None
        ack = self._agents.beat(batch, body)
        return None if ack is None else msgspec.json.encode(ack)
