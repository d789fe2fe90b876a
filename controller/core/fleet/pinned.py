"""What adopting a policy pins: each code's rule as the catalogue had it. What differs from that later is in shadow.

An upgrade brings a catalogue of its own. Until somebody adopts it, nothing is held or repaired by a rule that is new; a
rule that has changed goes on acting as it was adopted (``Kept``), and what it would do now is said. That holds for what
weighs events one by one, too: the table is pinned. Of an older version's adoption there is no more than its digest: a
rule whose table has changed since then does nothing until it is adopted.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from controller.core.fleet import weighing
from vocab.catalogue.row import CodeRow
from vocab.events import Event, Recovery, Scope, Severity
from vocab.states import ClearsOn


class Pinned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of a catalogue's row that a decision rests on.

    ``table``: a digest of what weighs its events one by one (``weighing``), if anything does; ``weighs``: that itself.
    """

    severity: Severity
    recovery: Recovery
    scope: Scope = Scope.GPU
    condition: bool = True
    blocks: bool = False
    certain: bool = False
    clears_on: ClearsOn = ClearsOn.RESET
    table: str = ""
    weighs: str = ""


class Kept(msgspec.Struct, frozen=True):
    """A rule that an upgrade has changed: it acts as it was (``then``), and is in shadow as it is ``now``."""

    then: Pinned
    now: Pinned

    def weighed(self, event: Event) -> Event:
        """An event that its agent has weighed by the rule as it is now; one that was weighed alone stays as it is."""
        now, then = self.now, self.then
        if (event.severity, event.recovery) == self._weight(now, event):
            severity, recovery = self._weight(then, event)
            event = replace(event, severity=severity, recovery=recovery)
        return replace(event, scope=then.scope) if event.scope is now.scope is not then.scope else event

    def _weight(self, rule: Pinned, event: Event) -> weighing.Weight:
        """What an event is by one of the two: by its table where that is what has changed, else by its row."""
        found = weighing.weigh(event, rule.weighs) if self.then.table != self.now.table else None
        return found or (rule.severity, rule.recovery)

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
    return Pinned(
        severity=row.severity,
        recovery=row.recovery,
        scope=row.scope,
        condition=row.condition,
        blocks=row.blocks,
        certain=row.certain,
        clears_on=row.clears_on,
        table=weighing.digest(row.code),
        weighs=weighing.text(row.code),
    )


def not_adopted(adopted: Mapping[str, Pinned], now: Mapping[str, Pinned]) -> dict[str, str]:
    """The rules of today's catalogue that are not as they were adopted, and how they differ, by code."""
    return {
        code: "it is new since the policy was adopted"
        if then is None
        else f"it has changed since the policy was adopted: {', '.join(changes(then, rule))}"
        for code, then, rule in ((code, adopted.get(code), rule) for code, rule in now.items())
        if then is None or _differ(then, rule)
    }


def kept(adopted: Mapping[str, Pinned], now: Mapping[str, Pinned]) -> dict[str, Kept]:
    """Those of them that can go on as they were adopted: all that they rest on is pinned."""
    both = ((code, then, now[code]) for code, then in adopted.items() if code in now)
    return {
        code: Kept(then, rule)
        for code, then, rule in both
        if _differ(then, rule) and (then.table == rule.table or weighing.is_readable(code, then.weighs))
    }


def _differ(then: Pinned, now: Pinned) -> bool:
    return replace(then, weighs="") != replace(now, weighs="")


def changes(then: Pinned, now: Pinned) -> list[str]:
    """What differs between two forms of a rule, in words."""
    pairs = [(name, getattr(then, name), getattr(now, name)) for name in then.__struct_fields__ if name != "weighs"]
    return [
        "the table that weighs its events" if name == "table" else f"{name} {_word(was)} is {_word(is_)}"
        for name, was, is_ in pairs
        if was != is_
    ]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
