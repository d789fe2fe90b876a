"""What adopting a policy pins: each code's rule as the catalogue had it. What differs from that later is in shadow.

An upgrade brings a catalogue of its own. Until somebody adopts it, nothing is held or repaired by a rule that is new; a
rule that has changed goes on acting as it was adopted (``Kept``), and what it would do now is said. Only of what weighs
events one by one no more than a digest is pinned: a rule whose table has changed does nothing until it is adopted.
"""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from vocab.catalogue import nvlink4, nvlink5_rules, recovery
from vocab.catalogue.row import CodeRow
from vocab.events import Event, Recovery, Scope, Severity
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


class Kept(msgspec.Struct, frozen=True):
    """A rule that an upgrade has changed: it acts as it was (``then``), and is in shadow as it is ``now``."""

    then: Pinned
    now: Pinned

    def weighed(self, event: Event) -> Event:
        """An event that its agent has weighed by the rule as it is now; one that was weighed alone stays as it is."""
        now, then = self.now, self.then
        if (event.severity, event.recovery) == (now.severity, now.recovery):
            event = replace(event, severity=then.severity, recovery=then.recovery)
        return replace(event, scope=then.scope) if event.scope is now.scope is not then.scope else event

    def forward(self, event: Event) -> Event:
        """The other way: what an agent that has not been upgraded yet has weighed, as the rule is now."""
        return Kept(self.now, self.then).weighed(event)

    def row(self, row: CodeRow) -> CodeRow:
        """The catalogue's row, as the rule was adopted."""
        then = self.then
        return replace(
            row,
            severity=then.severity,
            recovery=then.recovery,
            scope=then.scope,
            condition=then.condition,
            blocks=then.blocks,
            certain=then.certain,
            clears_on=then.clears_on,
        )

    @property
    def words(self) -> str:
        """What has changed."""
        return f"it acts as it was adopted, and has changed since: {', '.join(changes(self.then, self.now))}"


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


def kept(adopted: Mapping[str, Pinned], now: Mapping[str, Pinned]) -> dict[str, Kept]:
    """Those of them that can go on as they were adopted: all that they rest on is pinned."""
    both = ((code, then, now[code]) for code, then in adopted.items() if code in now)
    return {code: Kept(then, rule) for code, then, rule in both if then != rule and then.table == rule.table}


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
