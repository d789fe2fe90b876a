"""Shadow: a rule of which is only said what it would do. Why it is there: one place for all reasons.

It fell back by itself (``demotion``), nobody has adopted it as it is now (``pinned``), or the policy says so. A rule
that an upgrade has changed acts as it was adopted; what it would do as it is now is a note.
"""

from collections.abc import Iterator

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ladder import needs_repair
from vocab.events import Event
from vocab.lines import NoteLine, Subject

CHANGED = "changed_rule"


def why(fleet: Fleet, code: str, node: str, gpu: str | None) -> str | None:
    """Why the rule for a code does nothing there; None if it acts."""
    demoted = fleet.ledger.demoted.get(code)
    if demoted is not None:
        return f"the rule is in shadow: {demoted.text}"
    settings = fleet.settings
    if code in settings.shadowed:
        return f"the rule for {code} is in shadow: {settings.shadowed[code]}"
    if (settings.rules or settings.pools) and fleet.rule(code, node, gpu).shadow:
        return f"the rule for {code} is in shadow"
    return None


def as_changed(fleet: Fleet, came: Event, event: Event, now: float) -> Iterator[NoteLine]:
    """What a rule that an upgrade has changed would make of an event, once a place; ``event``: as it was adopted."""
    kept = fleet.settings.kept.get(event.code)
    if kept is None or event.injected or event.drill:
        return
    would = kept.forward(came)
    text = f"as adopted {_words(event, holds=kept.then.condition and not kept.then.blocks)}; "
    text += f"as changed it would be {_words(would, holds=kept.now.condition and not kept.now.blocks)}"
    note = NoteLine(at=now, subject=_place(event), code=CHANGED, text=f"{event.code}: {text}", rule=event.code)
    if (note.subject, note.code, note.text) not in fleet.ledger.notes:
        yield note


def _place(event: Event) -> Subject:
    return Subject(gpu=event.gpu) if event.gpu else Subject(node=event.node)


def _words(event: Event, *, holds: bool) -> str:
    held = "held" if holds and needs_repair(event.severity, event.recovery) else "not held"
    return f"{event.severity}, {event.recovery}: {held}"
