"""The way of one request: pick a replica, try it, try elsewhere until the first byte, then pass it through.

A stream that breaks off later goes on elsewhere from its tokens, where its engine can (see continuation): the same
loop, with the same limits, into the same answer.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from aiohttp import web

from engine.gateway.ask import Ask
from engine.gateway.board import Board
from engine.gateway.continuation import DONE
from engine.gateway.export import Export
from engine.gateway.journey import DEATHS, Broken, Journey
from engine.gateway.relay import END, Broke, Relay, lost_midway
from engine.gateway.replies import RETRY_AFTER_S, Failure, last_event, passed_on
from engine.gateway.routing import Pick, pick
from engine.gateway.table import Standing, of_model
from engine.gateway.upstream import Missed, Opened, Upstream, Whole

log = logging.getLogger(__name__)

RESUMES = 8  # times that a stream goes on elsewhere: a long one outlives a rollout's waves, none is moved for ever
MAX_HELD = 1000  # requests that wait for a replica; more are turned away at once
TAKES_NOTHING = frozenset({Standing.FENCED, Standing.UNWELL})


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
        with self._flying():
            try:
                while True:
                    found = await self._pick(journey)
                    with self._board.carrying(found.entry.replica), self._export.carrying(found.entry):
                        answer = await self._try(request, journey, found)
                    if answer is not None:
                        return answer
            except Failure as failure:
                if journey.relay is None:
                    raise
                return await self._give_up(journey, journey.relay, failure)

    @contextmanager
    def _flying(self) -> Iterator[None]:
        self.in_flight += 1
        self.idle.clear()
        try:
            yield
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
        among = board.routable(ask.model)
        if journey.broke is not None:
            among = of_model(among, journey.broke.model)
        return pick(among, board.outstanding, ask.prefix, journey.tried, board.now())

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
            return journey.failure()
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
        continues = journey.continuation if found.entry.resumes else None
        raw = ask.raw if continues is None else continues.body()
        outcome = await self._upstream.open(found, ask.path, raw, request.headers, streams=ask.streams)
        if isinstance(outcome, Missed):
            self._missed(journey, replica, outcome)
            if outcome.reason != "error" or outcome.answer is None or self._next(journey) is not None:
                return None
            outcome = outcome.answer  # there is no other to ask: the replica's own error says most
        if isinstance(outcome, Whole) and journey.relay is not None:
            raise lost_midway(replica, f"it refuses to go on: HTTP {outcome.status}")
        if isinstance(outcome, Whole):
            self._first_byte(journey)
            return web.Response(status=outcome.status, headers=passed_on(outcome.headers, replica), body=outcome.body)
        if journey.relay is None:
            journey.relay = Relay(request, continues, partial(self._first_byte, journey))
        return await self._stream(journey, journey.relay, found, outcome)

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
            raise journey.failure()
        self._export.retried(model, missed.reason)

    def _first_byte(self, journey: Journey) -> None:
        self._export.first_byte(journey.ask.model, self._board.now() - journey.began)

    async def _stream(self, journey: Journey, relay: Relay, found: Pick, opened: Opened) -> web.StreamResponse | None:
        """The answer; None if it broke off and has to go on elsewhere. Raises Failure if it cannot."""
        self._goes_on(journey, found.entry.replica)
        opened.stuck = partial(self._stuck, journey, found)
        try:
            how = await relay.carry(opened, found.entry.replica)
        finally:
            opened.close()
        if how is None:
            return await relay.end()
        self._broke_off(journey, found, how)
        if relay.continuation is None or journey.resumes >= RESUMES:
            raise lost_midway(found.entry.replica)
        if relay.continuation.lacks_only_its_end:
            return await relay.end(DONE + END)
        return None

    def _stuck(self, journey: Journey, found: Pick) -> bool:
        """Whether a stream on which nothing comes should be left: its replica is out of service, another is not."""
        if self._board.standing(found.entry.replica) not in TAKES_NOTHING or not found.entry.resumes:
            return False
        elsewhere = of_model(self._board.routable(journey.ask.model), found.entry.resumes)
        return any(entry.replica != found.entry.replica for entry in elsewhere.ready)

    def _broke_off(self, journey: Journey, found: Pick, how: Broke) -> None:
        """Note how, and what that says of the replica. Raises Failure if two have died of it."""
        replica = found.entry.replica
        told = {"deployment": journey.ask.model, "replica": replica, "reason": how.value}
        log.warning("a stream broke off", extra=told)
        if how is Broke.LOST:
            self._board.met(replica, Standing.REFUSED, lost=True)
        journey.broke = Broken(replica, how, self._board.now(), found.entry.resumes)
        journey.tried = {replica}
        journey.held_s = 0.0
        if how is not Broke.CUT_OFF:
            journey.died.append(replica)
        if len(journey.died) >= DEATHS:
            raise journey.failure()

    def _goes_on(self, journey: Journey, replica: str) -> None:
        """A broken stream has been taken up by this replica."""
        broke, journey.broke = journey.broke, None
        if broke is None:
            return
        journey.resumes += 1
        pause_s = self._board.now() - broke.at
        self._export.resumed(journey.ask.model, broke.how.value, pause_s)
        tokens = len(journey.continuation.tokens) if journey.continuation else 0
        told = {"deployment": journey.ask.model, "left": broke.replica, "replica": replica, "reason": broke.how.value,
                "tokens": tokens, "pause_s": round(pause_s, 3)}  # fmt: skip
        log.info("a stream goes on elsewhere", extra=told)

    async def _give_up(self, journey: Journey, relay: Relay, failure: Failure) -> web.StreamResponse:
        """End with an error a stream that cannot go on; the client has its status already."""
        replica = journey.broke.replica if journey.broke is not None else ""
        if failure.code != "stream_broken":
            failure = lost_midway(replica, str(failure))
        self._export.broke(journey.ask.model)
        told = {"deployment": journey.ask.model, "replica": replica, "why": str(failure)}
        log.warning("a stream ends with an error", extra=told)
        return await relay.end(last_event(failure))


CLIENT_GONE = (asyncio.CancelledError, ConnectionResetError)  # how a client that left shows itself
