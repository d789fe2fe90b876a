"""All NVLinks of one GPU in one call: what each link generation gives, under one set of names.

Hopper counts per link by scope; Ampere and older have a field of its own for each link; NVLink 5 has bit error
rates and counts recoveries elsewhere. Which of them a board has is learnt from its own answers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller
from agent.sources.nvml_errors import LOST, NEVER_SUPPORTED
from agent.sources.nvml_fields import FieldBatch, FieldRow
from agent.sources.units import bit_error_rate, mega, same
from vocab.readings import LinkReadings

COUNT = FieldRow(91, "links")
SENT, RECEIVED = 202, 204  # bytes of one link (NVLink 5), where no sum over links is given


class Figure(msgspec.Struct, frozen=True):
    """A reading of a link, and where it may be found: a scoped field, or one field a link (a tuple by number)."""

    name: str
    choices: tuple[int | tuple[int, ...], ...]
    convert: Callable[[Any], Any] = same


FIGURES: tuple[Figure, ...] = (
    Figure("state", (165,)),
    Figure("crc_errors", (163, (*range(32, 38), *range(96, 102)))),
    Figure("replays", (161, (*range(46, 52), *range(108, 114)))),
    Figure("recoveries", (162, 215, (*range(53, 59), *range(114, 120)))),
    Figure("effective_ber", (220,), bit_error_rate),
    Figure("symbol_ber", (222,), bit_error_rate),
    Figure("speed_bytes_per_s", (164, (*range(84, 90), *range(132, 138))), mega),
)
SUMS: tuple[Figure, ...] = (Figure("nvlink_tx_bytes", (SENT,)), Figure("nvlink_rx_bytes", (RECEIVED,)))
assert {figure.name for figure in FIGURES} == set(LinkReadings.__struct_fields__)


class Links(msgspec.Struct, frozen=True):
    """One read of all links; ``sums`` are readings of the GPU."""

    links: dict[str, LinkReadings] = {}
    errors: dict[str, dict[str, str]] = {}
    sums: dict[str, int] = {}


class LinkReader:
    """The links of one GPU, and which choice of each figure it answers to."""

    def __init__(self) -> None:
        self._count: int | None = None
        self._choice: dict[str, int] = {}
        self._batch: FieldBatch | None = None
        self._figures: tuple[Figure, ...] = ()

    def take(self, caller: Caller, handle: Any, sums: Sequence[str] = ()) -> Links:
        """Read them; ``sums`` names those of SUMS that nothing else gives. Raises CallFailed."""
        if self._count is None:
            ((_, error, count),) = FieldBatch(caller.api, (COUNT,)).take(caller, handle)
            if error:
                raise CallFailed("links", error)
            self._count = int(count)
        figures = (*FIGURES, *(figure for figure in SUMS if figure.name in sums))
        if self._batch is None or figures != self._figures:
            self._figures, self._batch = figures, FieldBatch(caller.api, self._rows(figures))
        return self._sort(list(self._batch.take(caller, handle)))

    def _rows(self, figures: Sequence[Figure]) -> list[FieldRow]:
        rows = []
        for link in range(self._count or 0):
            for figure in figures:
                choice = self._choice.get(figure.name, 0)
                field = figure.choices[choice] if choice < len(figure.choices) else ()
                if isinstance(field, int):
                    rows.append(FieldRow(field, figure.name, figure.convert, link))
                elif link < len(field):
                    rows.append(FieldRow(field[link], figure.name, figure.convert, link))
        return rows

    def _sort(self, found: list[tuple[FieldRow, str | None, Any]]) -> Links:
        lost = next((error for _, error, _ in found if error in LOST), None)
        if lost:
            raise CallFailed("links", lost)
        values: dict[str, dict[str, Any]] = {str(link): {} for link in range(self._count or 0)}
        errors: dict[str, dict[str, str]] = {}
        for number, (row, error, value) in zip(self._numbers(), found, strict=True):
            if error is None:
                values[number][row.name] = value
            elif error not in NEVER_SUPPORTED:
                errors.setdefault(number, {})[row.name] = error
        self._learn(found)
        sums = {name: sum(link.pop(name, 0) for link in values.values()) for name in (f.name for f in SUMS)
                if any(name in link for link in values.values())}  # fmt: skip
        return Links({number: LinkReadings(**one) for number, one in values.items()}, errors, sums)

    def _numbers(self) -> list[str]:
        return [str(row.scope) for row in self._batch.rows] if self._batch else []

    def _learn(self, found: Sequence[tuple[FieldRow, str | None, Any]]) -> None:
        """A figure that no link gives, though one is up, is looked for elsewhere the next time."""
        if not any(row.name == "state" and value == 1 for row, _, value in found):
            return
        for figure in self._figures:
            mine = [error for row, error, _ in found if row.name == figure.name]
            if mine and all(error in NEVER_SUPPORTED for error in mine):
                self._choice[figure.name] = self._choice.get(figure.name, 0) + 1
                self._batch = None
