"""A Prometheus, asked a few things at a time: a month as one query a day, so that each answer is small."""

import asyncio
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from vocab.errors import InputError
from wire.client import Client

DAY_S = 86_400.0
OVERLAP_S = 600.0  # of two days, so that what changes at midnight is seen
MOST_NAMED = 50  # GPUs in one question
AT_ONCE = 4
ANSWER_S = 120.0

_NAME = re.compile(r"[\w-]+")
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


def whole(names: str, more: str = "") -> str:
    """Series of these names, of whole GPUs."""
    return f'{{__name__=~"{names}",GPU_I_ID=""{more}}}'


def has_changed(names: str, by: str, wide_s: float) -> str:
    """Gauges that were more than one number in the time, or were not there when it began and then not zero."""
    gauge = whole(names)
    top = f"(max by ({by}) (max_over_time({gauge}[{wide_s:.0f}s])) > 0)"
    low = f"min by ({by}) (min_over_time({gauge}[{wide_s:.0f}s]))"
    was = f"max by ({by}) (max_over_time({gauge}[{OVERLAP_S:.0f}s] offset {wide_s - OVERLAP_S:.0f}s))"
    return f"{top} != {low} or {top} unless {was}"


def _named(rows: Iterable[Mapping[str, str]], ids: Sequence[str]) -> Iterator[str]:
    """What chooses the GPUs of these series, a few at a time, by the first of the labels ``ids`` that names them."""
    named: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        label = next((each for each in ids if _NAME.fullmatch(row.get(each, ""))), None)
        if label is not None:
            named[label].add(row[label])
    for label, found in sorted(named.items()):
        some = sorted(found)
        for start in range(0, len(some), MOST_NAMED):
            yield f',{label}=~"{"|".join(some[start : start + MOST_NAMED])}"'


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
        return await self.moments(f"avg by ({by}) (avg_over_time({whole(names)}[{self._step:.0f}s]))")

    async def moments(self, query: str) -> list[Series]:
        """What a query says, step by step."""
        answers = await asyncio.gather(*(self._part(query, end) for end in self._ends()))
        found: dict[str, Series] = {}
        for row in (row for answer in answers for row in answer.data.result):
            key = json.dumps(row.metric, sort_keys=True)
            known = found.setdefault(key, (row.metric, []))
            known[1].extend((at, float(value)) for at, value in row.values)
        return list(found.values())

    async def changing(self, names: str, by: str, ids: Sequence[str]) -> list[tuple[float, Series]]:
        """Every sample of the days on which a gauge was more than one number, or began with one that is not zero.

        ``ids``: the labels that can name a series' GPU. With all labels, of which some may change with the number; and
        from when on a number that comes is a new one: what was there before was there the day before, too.
        """
        parts = await asyncio.gather(*(self._changing(names, by, ids, end) for end in self._ends()))
        return [series for part in parts for series in part]

    async def _changing(self, names: str, by: str, ids: Sequence[str], end: float) -> list[tuple[float, Series]]:
        wide = min(DAY_S, end - self._begin) + OVERLAP_S
        found = await self._ask("query", query=has_changed(names, by, wide), time=f"{end:.0f}")
        self._told()
        rows = await asyncio.gather(*(
            self._ask("query", query=f"{whole(names, some)}[{wide:.0f}s]", time=f"{end:.0f}")
            for some in _named((row.metric for row in found.data.result), ids)
        ))  # fmt: skip
        since = end - wide + OVERLAP_S
        return [(since, (row.metric, [(at, float(value)) for at, value in row.values]))
                for each in rows for row in each.data.result]  # fmt: skip

    @property
    def _begin(self) -> float:
        return self._now - self._days * DAY_S

    def _ends(self) -> list[float]:
        """When each of its days is over."""
        return [min(self._now, self._begin + (part + 1) * DAY_S) for part in range(math.ceil(self._days))]

    def _told(self) -> None:
        self._done += 1
        self._tell("metrics asked", self._done, self._all)

    async def _part(self, query: str, end: float) -> _Answer:
        start = max(self._begin, end - DAY_S) + self._step
        answer = await self._ask("query_range", query=query, start=f"{start:.0f}", end=f"{end:.0f}",
                                 step=f"{self._step:.0f}s")  # fmt: skip
        self._told()
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
