"""What adopting a policy pins: each code's rule as the catalogue had it. What differs from that later is in shadow.

An upgrade brings a catalogue of its own. Until somebody adopts it, nothing is held or repaired by a rule that is new,
or of which anything that decisions rest on has changed; what it would do is said.
"""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from vocab.catalogue import nvlink4, nvlink5_rules, recovery
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Scope, Severity
from vocab.states import ClearsOn

# codes whose events are weighed one by one: the table that weighs them is part of their rule
TABLES: dict[str, object] = {
    **{f"xid:{xid}": rules for xid, rules in nvlink5_rules.RULES.items()},
    "xid:74": nvlink4.BITS,
    "xid:154": recovery.ACTIONS,
    "recovery_action": recovery.ACTIONS,
}


class Pinned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of a catalogue's row that a decision rests on. ``table``: a digest of what weighs its events one by one."""

    severity: Severity
    recovery: Recovery
    scope: Scope = Scope.GPU
    condition: bool = True
    blocks: bool = False
    certain: bool = False
    clears_on: ClearsOn = ClearsOn.RESET
    table: str = ""


def pin(rows: Mapping[str, CodeRow]) -> dict[str, Pinned]:
    """The rules of a catalogue, by code."""
    return {code: _pinned(row) for code, row in rows.items()}


def _pinned(row: CodeRow) -> Pinned:
    table = TABLES.get(row.code)
    return Pinned(
        severity=row.severity,
        recovery=row.recovery,
        scope=row.scope,
        condition=row.condition,
        blocks=row.blocks,
        certain=row.certain,
        clears_on=row.clears_on,
        table="" if table is None else blake2b(repr(table).encode(), digest_size=6).hexdigest(),
    )


def not_adopted(adopted: Mapping[str, Pinned], now: Mapping[str, Pinned]) -> dict[str, str]:
    """The rules of today's catalogue that are not as they were adopted, and how they differ, by code."""
    return {
        code: "it is new since the policy was adopted"
        if (then := adopted.get(code)) is None
        else f"it has changed since the policy was adopted: {', '.join(changes(then, rule))}"
        for code, rule in now.items()
        if adopted.get(code) != rule
    }


def changes(then: Pinned, now: Pinned) -> list[str]:
    """What differs between two forms of a rule, in words."""
    pairs = [(name, getattr(then, name), getattr(now, name)) for name in then.__struct_fields__]
    return [
        "the table that weighs its events" if name == "table" else f"{name} {_word(was)} is {_word(is_)}"
        for name, was, is_ in pairs
        if was != is_
    ]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
