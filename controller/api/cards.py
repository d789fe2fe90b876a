"""Cards by serial number: where each has been, what befell it there, and what was done about it."""

from typing import Annotated

import msgspec

from controller.api.paging import PAGE, Limit, Paged, PageQuery, behind
from controller.api.route import Call, Route, not_found
from controller.core.fleet.lemons import Lemon
from controller.lemons import Lemons
from controller.store import cards
from controller.store.card_history import CardHistory, history
from controller.store.cards import Card
from controller.store.store import Store

Name = Annotated[str, msgspec.Meta(max_length=300)]


class CardQuery(PageQuery, frozen=True, kw_only=True):
    """Which GPUs are wanted; ``node``: those that were last seen there."""

    serial: Name | None = None
    node: Name | None = None
    board: Name | None = None


class LemonQuery(msgspec.Struct, frozen=True, kw_only=True):
    """``all``: also cards whose signals do not make a lemon."""

    all: bool = False
    limit: Limit = PAGE


class Cards:
    """The routes over the ledger of cards."""

    def __init__(self, store: Store, lemons: Lemons) -> None:
        self._store = store
        self._lemons = lemons

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="GET",
                path="/api/v1/cards",
                name="cards",
                summary="Every GPU that was ever seen, with the serial number of its board and where it was last",
                run=self.many,
                answer=list[Card],
                query=CardQuery,
                paged=True,
                errors=(503,),
            ),
            Route(
                method="GET",
                path="/api/v1/cards/{serial}",
                name="card",
                summary="One board's history, by serial number or by the UUID of a GPU on it",
                run=self.one,
                answer=CardHistory,
                errors=(404, 503),
            ),
            Route(
                method="GET",
                path="/api/v1/lemons",
                name="lemons",
                summary="Cards that stood out among their peers in the last 28 days, the worst first, and why",
                run=self.lemons,
                answer=list[Lemon],
                query=LemonQuery,
                errors=(503,),
            ),
        ]

    async def many(self, call: Call) -> Paged:
        """GPUs that match, by UUID."""
        query: CardQuery = call.query
        wanted = {"serial": query.serial, "node": query.node, "board": query.board}
        async with self._store.reading() as connection:
            return Paged(*await cards.cards_after(connection, behind(query), query.most, **wanted))

    async def one(self, call: Call) -> CardHistory:
        """One board."""
        name = call.part("serial")
        async with self._store.reading() as connection:
            found = await cards.named(connection, name) if name.isprintable() else []
            if not found:
                raise not_found("card", name, "/api/v1/cards")
            return await history(connection, found)

    async def lemons(self, call: Call) -> list[Lemon]:
        """Lemons, as they were judged within the last hour."""
        query: LemonQuery = call.query
        found = await self._lemons.found()
        return [each for each in found if each.lemon or query.all][: query.limit]
