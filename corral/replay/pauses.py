"""When nodes stood still: while a node is frozen its agent sees nothing and lets no deadline pass.

A recording may say it when the pause began or when its end was noticed. What the node was seen to do tells which:
a pause that something falls into lies before its line, and so does one without anything seen about it.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

MARK = b'"pause_s"'


class _Line(msgspec.Struct):
    """What is looked at of a line."""

    at: float
    obs: str = ""
    node: str | None = None
    pause_s: float | None = None


Pauses = dict[str | None, list[tuple[float, float]]]  # node -> (from, to), in order


def find(paths: Sequence[Path]) -> Pauses:
    """The pauses of all files. What cannot be read is left to whoever reads it in earnest."""
    if not any(MARK in line for path in paths for line in _raw(path)):
        return {}
    decoder = msgspec.json.Decoder(_Line)
    seen: dict[str | None, list[float]] = defaultdict(list)
    said: list[_Line] = []
    for path in paths:
        for raw in _raw(path):
            try:
                line = decoder.decode(raw)
            except msgspec.DecodeError:
                continue
            if line.obs == "clock" and line.pause_s:
                said.append(line)
            elif line.obs not in {"report", "reach", "end"}:
                seen[line.node].append(line.at)
    pauses: Pauses = defaultdict(list)
    for line in sorted(said, key=lambda line: line.at):
        pauses[line.node].append(_span(line, sorted(seen[line.node])))
    return dict(pauses)


def _raw(path: Path) -> Iterable[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError:
        return


def _span(line: _Line, seen: Sequence[float]) -> tuple[float, float]:
    length = line.pause_s or 0.0
    after = bisect_right(seen, line.at)
    is_busy_after = after < len(seen) and seen[after] < line.at + length
    is_busy_before = bisect_right(seen, line.at - length) < bisect_left(seen, line.at)
    starts = is_busy_before and not is_busy_after  # an agent that was frozen itself can only say so afterwards
    return (line.at, line.at + length) if starts else (line.at - length, line.at)
