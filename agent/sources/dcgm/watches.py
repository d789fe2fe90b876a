"""What the host engine is asked to read for us, and what of it it cannot.

Fields are watched in sets by period, the performance counters in a set of their own: if another tool holds
them, all other readings go on. If a set is refused because of one field, its fields are tried one by one.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.dcgm.engine import Engine
from agent.sources.dcgm.names import GONE
from agent.sources.dcgm_fields import BY_NAME, FieldRow

UNKNOWN = frozenset({"BADPARAM", "UNKNOWN_FIELD"})  # this release does not know a field of the set
ALWAYS = 1.0  # seconds: period of the fields that are no reading


class Watches(msgspec.Struct):
    """The watches of one group on one connection."""

    engine: Engine
    group: Any
    prefix: str
    always: tuple[int, ...] = ()  # fields that are watched whatever is needed
    rows: tuple[FieldRow, ...] = ()  # what is watched
    unknown: frozenset[str] = frozenset()  # readings that this release does not know
    refused: dict[str, str] = {}  # readings that it will not watch now, and why
    watched: list[Any] = []
    numbers: Iterator[int] = msgspec.field(default_factory=lambda: itertools.count(1))

    def set(self, names: Iterable[str]) -> None:
        """Watch these readings from now on, and no others. Raises CallFailed if the connection is gone."""
        for watched in self.watched:
            self.engine.unwatch(self.group, watched)
        self.watched, self.refused, self.rows = [], {}, ()
        if self.always:
            self._watch(self.always, ALWAYS)
        wanted = sorted((BY_NAME[name] for name in set(names) - self.unknown), key=_set_of)
        for (period_s, _), rows in itertools.groupby(wanted, key=_set_of):
            self._watch_rows(tuple(rows), period_s)
        if self.watched:
            self.engine.refresh()

    def _watch_rows(self, rows: tuple[FieldRow, ...], period_s: float) -> None:
        try:
            self._watch([row.field for row in rows], period_s)
            self.rows += rows
        except CallFailed as failed:
            if failed.error in GONE:
                raise
            if failed.error not in UNKNOWN:
                self.refused |= {row.name: failed.error for row in rows}
            elif len(rows) == 1:
                self.unknown |= {rows[0].name}
            else:
                for row in rows:
                    self._watch_rows((row,), period_s)

    def _watch(self, fields: Sequence[int], period_s: float) -> None:
        name = f"{self.prefix}-{next(self.numbers)}"
        self.watched.append(self.engine.watch(self.group, name, fields, period_s))


def _set_of(row: FieldRow) -> tuple[float, bool]:
    return row.period_s, row.profiling
