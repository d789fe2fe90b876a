"""The route over rollups: what befell GPUs and deployments by hours (two weeks) and by days (400), in pages."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from controller.api.paging import Paged, PageQuery, behind, wrong_cursor
from controller.api.route import Call, Route
from controller.store.rollup import DAY, HOUR, Place, Rollup, Wanted, rollups_after
from controller.store.store import Store
from vocab.errors import InputError

Name = Annotated[str, msgspec.Meta(max_length=100)]
Second = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
SPANS = {"hour": HOUR, "day": DAY}


class RollupQuery(PageQuery, frozen=True, kw_only=True):
    """Which sums are wanted: of hours or days that begin within the times (``until`` is left out), of everything given.

    ``pool``: of the GPUs that were last seen on a node of it.
    """

    period: Literal["hour", "day"] = "day"
    since: Second | None = None
    until: Second | None = None
    gpu: Name | None = None
    deployment: Name | None = None
    pool: Name | None = None
    measure: Literal["fault", "hold", "repair", "verdict", "state"] | None = None
    name: Name | None = None


class RollupRoutes:
    """Read from the store; ``pools``: the nodes of each."""

    def __init__(self, store: Store, pools: Mapping[str, tuple[str, ...]]) -> None:
        self._store = store
        self._pools = pools

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            Route(
                method="GET",
                path="/api/v1/rollups",
                name="rollups",
                summary="Faults, holds, repairs, verdicts and seconds by state of GPUs and deployments, by hour or day",
                run=self.many,
                answer=list[Rollup],
                query=RollupQuery,
                paged=True,
                errors=(503,),
            )
        ]

    async def many(self, call: Call) -> Paged:
        """Sums that match, the earliest first."""
        query: RollupQuery = call.query
        if query.pool is not None and query.pool not in self._pools:
            known = ", ".join(sorted(self._pools)) or "none is configured"
            raise InputError(f"there is no pool {query.pool!r}; known: {known}")
        wanted = Wanted(
            span=SPANS[query.period],
            since=query.since,
            until=query.until,
            nodes=None if query.pool is None else self._pools[query.pool],
            equal={
                name: value
                for name in ("gpu", "deployment", "measure", "name")
                if (value := getattr(query, name)) is not None
            },
        )
        async with self._store.reading() as connection:
            found, last = await rollups_after(connection, wanted, _place(query), query.most)
        return Paged(found, None if last is None else msgspec.json.encode(last).decode())


def _place(query: RollupQuery) -> Place | None:
    """Where the page before ended. Raises InputError."""
    named = behind(query)
    try:
        return None if named is None else msgspec.json.decode(named, type=Place)
    except msgspec.DecodeError as error:
        raise wrong_cursor(query) from error
