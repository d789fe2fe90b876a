"""The way of one request: pick a replica, try it, try elsewhere until the first byte, then pass it through."""

import asyncio
import logging
from contextlib import ExitStack

from aiohttp import web

from engine.gateway.ask import Ask
from engine.gateway.board import Board
from engine.gateway.export import Export
from engine.gateway.relay import relay
from engine.gateway.replies import RETRY_AFTER_S, Failure, passed_on
from engine.gateway.routing import Pick, pick
from engine.gateway.upstream import Missed, Opened, Upstream, Whole

log = logging.getLogger(__name__)

DEATHS = 2  # a request that two replicas broke on may be what broke them: it is never sent a third time
MAX_HELD = 1000  # requests that wait for a replica; more are turned away at once


class Journey:
    """What is known of one request on its way."""

    def __init__(self, ask: Ask, began: float) -> None:
        self.ask = ask
        self.began = began
        self.tried: set[str] = set()  # replicas that would not take it, since something last changed
        self.died: list[str] = []  # replicas that broke on it, one entry a time
        self.held_s = 0.0


class Proxy:
    """Carries requests for the deployments on the board."""

    def __init__(self, board: Board, upstream: Upstream, export: Export, hold_s: float) -> None:
        self._board = board
        self._upstream = upstream
        self._export = export
        self._hold_s = hold_s
        self._held = 0
        self.in_flight = 0
        self.idle = asyncio.Event()  # set while nothing is in flight
        self.idle.set()

    async def carry(self, request: web.Request, ask: Ask) -> web.StreamResponse:
        """The answer to this request. Raises Failure if there can be none."""
        journey = Journey(ask, self._board.now())
        self.in_flight += 1
        self.idle.clear()
        try:
            while True:
                found = await self._pick(journey)
                with self._board.carrying(found.entry.replica), self._export.carrying(found.entry):
                    answer = await self._try(request, journey, found)
                if answer is not None:
                    return answer
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()

    async def _pick(self, journey: Journey) -> Pick:
        """The next replica to try, held while there is none. Raises Failure after ``hold_s`` of that."""
        while True:
            self._must_exist(journey.ask.model)
            found = self._next(journey)
            if found is not None:
                return found
            left = self._hold_s - journey.held_s
            if left <= 0 or self._held >= MAX_HELD:
                raise self._unroutable(journey)
            await self._hold(journey, left)

    def _next(self, journey: Journey) -> Pick | None:
        board, ask = self._board, journey.ask
        return pick(board.routable(ask.model), board.outstanding, ask.prefix, journey.tried, board.now())

    async def _hold(self, journey: Journey, most_s: float) -> None:
        """Wait until something changes; then what refused may be asked again."""
        began = self._board.now()
        self._held += 1
        try:
            with self._export.holding(journey.ask.model):
                await self._board.change(most_s)
        finally:
            self._held -= 1
            journey.held_s += self._board.now() - began
        journey.tried.clear()

    def _must_exist(self, model: str) -> None:
        known = self._board.table.deployments
        if model in known or not self._board.informed:
            return
        serves = ", ".join(sorted(known)) or "nothing yet"
        raise Failure(
            404,
            "model_not_found",
            f"The model {model!r} does not exist; this gateway serves: {serves}",
            kind="invalid_request_error",
            param="model",
        )

    def _unroutable(self, journey: Journey) -> Failure:
        if journey.died:
            return _broke(journey)
        model = journey.ask.model
        return Failure(
            503,
            "no_replica",
            f"no replica of {model!r} takes requests now (waited {journey.held_s:.0f} s); "
            f"try again in {RETRY_AFTER_S} s",
        )

    async def _try(self, request: web.Request, journey: Journey, found: Pick) -> web.StreamResponse | None:
        """One try; None if it has to be made elsewhere. Raises Failure if it must not be."""
        ask, replica = journey.ask, found.entry.replica
        if found.panic:
            self._export.panicked(ask.model)
        outcome = await self._upstream.open(found, ask.path, ask.raw, request.headers, streams=ask.streams)
        if isinstance(outcome, Missed):
            self._missed(journey, replica, outcome)
            if outcome.reason != "error" or outcome.answer is None or self._next(journey) is not None:
                return None
            outcome = outcome.answer  # there is no other to ask: the replica's own error says most
        if isinstance(outcome, Whole):
            self._export.first_byte(ask.model, self._board.now() - journey.began)
            return web.Response(status=outcome.status, headers=passed_on(outcome.headers, replica), body=outcome.body)
        return await self._stream(request, journey, replica, outcome)

    def _missed(self, journey: Journey, replica: str, missed: Missed) -> None:
        model = journey.ask.model
        if missed.standing is not None:
            self._board.met(replica, missed.standing, lost=missed.died)
        told = {"deployment": model, "replica": replica, "reason": missed.reason}
        log.info("a replica did not take a request", extra=told)
        journey.tried.add(replica)
        if missed.died:
            journey.died.append(replica)
        if len(journey.died) >= DEATHS:
            raise _broke(journey)
        self._export.retried(model, missed.reason)

    async def _stream(self, request: web.Request, journey: Journey, replica: str, opened: Opened) -> web.StreamResponse:
        model = journey.ask.model
        with ExitStack() as stack:
            stack.callback(opened.close)

            def on_first() -> None:
                self._export.first_byte(model, self._board.now() - journey.began)

            response, broken = await relay(request, opened, replica, on_first)
        if broken:
            self._export.broke(model)
            log.warning("a stream broke", extra={"deployment": model, "replica": replica})
        return response


def _broke(journey: Journey) -> Failure:
    """Two replicas broke on it, or one did and there is no other."""
    names = " and ".join(dict.fromkeys(journey.died))
    if len(journey.died) < DEATHS:
        message = f"replica {names} failed while it worked on this request, and no other takes requests now"
        return Failure(502, "replica_failed", message, kind="server_error")
    message = f"replicas {names} failed while they worked on this request; it is not sent a third time"
    return Failure(502, "replicas_failed", message, kind="server_error")


CLIENT_GONE = (asyncio.CancelledError, ConnectionResetError)  # how a client that left shows itself
