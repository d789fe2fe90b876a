"""Changes to JSON that keep it JSON: a flipped byte mostly breaks the syntax and goes no further than the decoder."""

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 1e300, -1e300, 2**31, 2**63 - 1, 2**64, "", "x", "0", "-1", "nan", "\x1f",
    "é\u2028", "GPU-n1-0", "GPU-n1-1", "n1", "n2", "n1-a", "0000:18:00", "1970-01-01T00:00:00Z",
    [], {}, [None], [[]], {"": None},
)  # fmt: skip


def documents(data: bytes, most: int, seed: int) -> bytes:
    """One JSON document a line: change a value, drop, repeat or swap lines."""
    dice = random.Random(seed)
    lines = data.split(b"\n")
    at = dice.randrange(len(lines))
    act = dice.randrange(8)
    if act == 0:
        del lines[at]
    elif act == 1:
        lines.insert(dice.randrange(len(lines) + 1), lines[at])
    elif act == 2:
        other = dice.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines[at] = document(lines[at], most, dice.randrange(2**32))
    return b"\n".join(lines)[:most]


def document(data: bytes, most: int, seed: int) -> bytes:
    """Change a value or a key of one JSON document; what is none stays as it is."""
    dice = random.Random(seed)
    try:
        whole = json.loads(data)
    except ValueError:
        return data
    slots = list(_slots(whole))
    if slots:
        _change(*dice.choice(slots), slots, dice)
    return json.dumps(whole, separators=(",", ":")).encode()[:most]


def _slots(value: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _slots(inner)


def _change(holder: Any, key: Any, slots: list[tuple[Any, Any]], dice: random.Random) -> None:
    act = dice.randrange(6)
    if act == 0:
        del holder[key]
    elif act == 1:
        other, name = dice.choice(slots)
        holder[key] = json.loads(json.dumps(other[name])) if _has(other, name) else None
    elif act == 2 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * dice.choice([-1, 0, 1.5, 2, 1000]) + dice.choice([0, 1, -1, 0.001, 61, 3600])
    else:
        holder[key] = dice.choice(ODD)


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)
