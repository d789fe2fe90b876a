"""Partial lines: what a case says of a decision line, and how near a line comes to it.

A partial line is a JSON object. It matches a line if every key that it gives equals the line's: objects key by
key (other keys of the line do not matter), lists whole and in order (their objects partially), everything else
by value. ``{"any": true}`` stands for *present and not null*; ``null`` for *null or not there*.
"""

import json
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
ANY = {"any": True}
NEAREST = 4  # lines shown of those that come nearest: enough to see which of a few similar ones was meant


def differences(wanted: Any, found: Any, at: str = "") -> list[str]:
    """Where ``found`` is not as ``wanted``, one text a place; empty if it matches."""
    if wanted == ANY:
        return [f"{at}: nothing there"] if found is None else []
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [text for key, value in wanted.items() for text in differences(value, found.get(key), f"{at}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [text for n, (one, other) in pairs for text in differences(one, other, f"{at}[{n}]")]
    same = wanted == found and isinstance(wanted, bool) == isinstance(found, bool)  # true is not 1
    return [] if same else [f"{at}: {_text(found)} instead of {_text(wanted)}"]


def matches(wanted: Json, line: Json) -> bool:
    """Whether a line is as the partial line says."""
    return not differences(wanted, line)


def missing_of(wanted: Sequence[Json], lines: Sequence[Json]) -> str | None:
    """Which of the partial lines does not appear in this order, told with the lines that come nearest; or None."""
    start = 0
    for number, partial in enumerate(wanted, 1):
        found = next((n for n in range(start, len(lines)) if matches(partial, lines[n])), None)
        if found is None:
            return f"must, line {number}, does not appear{_where(partial, lines, start)}"
        start = found + 1
    return None


def _where(partial: Json, lines: Sequence[Json], start: int) -> str:
    earlier = [n for n in range(start) if matches(partial, lines[n])]
    after = f" after output line {start}" if start else ""
    before = f" (output line {earlier[0] + 1} is like that, but it comes before)" if earlier else ""
    return f"{after}{before}:\n  {_text(partial)}\nnearest:\n{nearest(partial, lines)}"


def nearest(partial: Json, lines: Sequence[Json]) -> str:
    """The lines that differ least from a partial line, each with its differences."""
    kin = [n for n, line in enumerate(lines) if line.get("kind") == partial.get("kind", line.get("kind"))]
    if not kin:
        kinds = " ".join(sorted({str(line.get("kind")) for line in lines})) or "no lines at all"
        return f"  there is no line of this kind (there are: {kinds})"
    ranked = sorted((len(differences(partial, lines[n])), n) for n in kin)[:NEAREST]
    return "\n".join(_told(partial, lines[n], n) for _, n in ranked)


def _told(partial: Json, line: Json, number: int) -> str:
    why = "; ".join(text.removeprefix(".") for text in differences(partial, line)) or "matches"
    return f"  {number + 1:4} {_text(line)}\n       differs in {why}"


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 700 else text[:700] + " …"
