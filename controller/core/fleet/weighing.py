"""How the events of some codes are weighed one by one, by a table; also by one that was adopted and has changed since.

An agent weighs by the table of its own version. What it read is in the fields of the event (they may hold anything), so
the same event can be weighed by another table: as text (JSON) an adoption keeps it.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from vocab.catalogue import nvlink4, nvlink5, nvlink5_rules, recovery
from vocab.events import Event, Recovery, Severity

Weight = tuple[Severity, Recovery]


class Weigher(msgspec.Struct, frozen=True):
    """One table, its type, and how an event is weighed by one of that type; None: the code's own row counts."""

    table: Any
    kind: Any
    weigh: Callable[[Any, Event], Weight | None]


def _by_advice(table: Any, event: Event) -> Weight:
    to = event.fields.get("to")
    advice = recovery.advice(to if isinstance(to, int) else None, table)
    return advice.severity, advice.recovery


def _by_bits(table: Any, event: Event) -> Weight | None:
    registers, times = event.fields.get("registers"), event.fields.get("times")
    words = [word if isinstance(word, str) else "" for word in registers] if isinstance(registers, list | tuple) else []
    counts = {name: count for name, count in times.items() if isinstance(count, int)} if isinstance(times, dict) else {}
    found = nvlink4.judge(nvlink4.classes(words, table), counts)
    return None if found is None else (found.severity, found.recovery)


def _by_sheet(table: Any, event: Event) -> Weight:
    found = nvlink5.decode(
        int(event.code.removeprefix("xid:")),
        unit=event.fields.get("unit"),
        fatal=event.fields.get("fatal"),
        intrinfo=_word(event.fields.get("intrinfo")),
        error_status=_word(event.fields.get("error_status")),
        rules=table,
    )
    return found.severity, found.recovery


def _word(text: Any) -> int | None:
    try:
        return int(text, 16)
    except (TypeError, ValueError):
        return None


_ADVICE = Weigher(recovery.ACTIONS, dict[int, recovery.Advice], _by_advice)
_BITS = Weigher(nvlink4.BITS, dict[int, tuple[tuple[tuple[int, ...], nvlink4.Finding], ...]], _by_bits)
WEIGHERS: dict[str, Weigher] = {
    **{
        f"xid:{xid}": Weigher(rules, tuple[nvlink5_rules.Rule, ...], _by_sheet)
        for xid, rules in nvlink5_rules.RULES.items()
    },
    "xid:74": _BITS,
    "xid:154": _ADVICE,
    "recovery_action": _ADVICE,
}


def digest(code: str) -> str:
    """By which two tables of a code are told apart; empty where there is none."""
    weigher = WEIGHERS.get(code)
    return "" if weigher is None else blake2b(repr(weigher.table).encode(), digest_size=6).hexdigest()


def text(code: str) -> str:
    """The table of a code, as it is kept; empty where there is none."""
    weigher = WEIGHERS.get(code)
    return "" if weigher is None else msgspec.json.encode(weigher.table).decode()


def is_readable(code: str, kept: str) -> bool:
    """Whether events can be weighed by a table that was kept: its form may have changed since."""
    try:
        return bool(kept) and code in WEIGHERS and _table(code, kept) is not None
    except msgspec.ValidationError:
        return False


def weigh(event: Event, kept: str) -> Weight | None:
    """How grave an event is, and what it asks for, by this table; None: as the code's own row says."""
    return WEIGHERS[event.code].weigh(_table(event.code, kept), event)


@lru_cache(maxsize=64)
def _table(code: str, kept: str) -> Any:
    return msgspec.json.decode(kept, type=WEIGHERS[code].kind)
