"""A Prometheus, asked a few things at a time: a month as one query a day, so that each answer is small."""

import asyncio
import json
import math
from collections.abc import Callable, Mapping

import msgspec

from vocab.errors import InputError
from wire.client import Client

DAY_S = 86_400.0
AT_ONCE = 4
ANSWER_S = 120.0

Series = tuple[Mapping[str, str], list[tuple[float, float]]]  # labels, and (seconds since the epoch, value)
Tell = Callable[[str, int, int], None]


class _Row(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None


class _Result(msgspec.Struct):
    result: list[_Row] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Result = msgspec.field(default_factory=_Result)
    error: str = ""


class Asked:
    """The last ``days`` of one Prometheus in averages over ``step`` seconds. ``queries``: how many will be asked."""

    def __init__(self, client: Client, now: float, days: float, step: float, queries: int, tell: Tell) -> None:
        self._client = client
        self._now, self._days, self._step = now, days, step
        self._tell = tell
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._done, self._all = 0, queries * math.ceil(days)

    async def over_time(self, names: str, by: str) -> list[Series]:
        """The averages over each step, by these labels."""
        begin, parts = self._now - self._days * DAY_S, math.ceil(self._days)
        query = f'avg by ({by}) (avg_over_time({{__name__=~"{names}",GPU_I_ID=""}}[{self._step:.0f}s]))'
        ends = [min(self._now, begin + (part + 1) * DAY_S) for part in range(parts)]
        answers = await asyncio.gather(*(self._part(query, end) for end in ends))
        found: dict[str, Series] = {}
        for row in (row for answer in answers for row in answer.data.result):
            key = json.dumps(row.metric, sort_keys=True)
            known = found.setdefault(key, (row.metric, []))
            known[1].extend((at, float(value)) for at, value in row.values)
        return list(found.values())

    async def _part(self, query: str, end: float) -> _Answer:
        start = max(self._now - self._days * DAY_S, end - DAY_S) + self._step
        answer = await self._ask("query_range", query=query, start=f"{start:.0f}", end=f"{end:.0f}",
                                 step=f"{self._step:.0f}s")  # fmt: skip
        self._done += 1
        self._tell("metrics asked", self._done, self._all)
        return answer

    async def now(self, names: str, by: str) -> list[Series]:
        """The latest values."""
        answer = await self._ask("query", query=f'max by ({by}) ({{__name__=~"{names}"}})', time=f"{self._now:.0f}")
        return [(row.metric, [(row.value[0], float(row.value[1]))]) for row in answer.data.result if row.value]

    async def _ask(self, route: str, **query: str) -> _Answer:
        async with self._gate:
            answer = await self._client.call("GET", f"/api/v1/{route}", _Answer, timeout_s=ANSWER_S, **query)
        if answer.status != "success":
            raise InputError(f"--prometheus: {answer.error or 'it refused a query'}")
        return answer
