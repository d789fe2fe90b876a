"""What came of a person's order, read from the lines that the Core answered it with."""

from collections.abc import Sequence

import msgspec

from controller.store.change import KIND, subject_text
from vocab.lines import ActionLine, AnyLine, HoldLine, NoteLine
from vocab.states import ActionState


class Verdict(msgspec.Struct, frozen=True):
    """``refused`` is the reason why nothing was done, or None; ``text`` is for the audit."""

    refused: str | None
    text: str


def verdict(lines: Sequence[AnyLine]) -> Verdict:
    """Whether the order was refused, and what it did in few words."""
    for line in lines:
        if isinstance(line, HoldLine) and line.op == "refused":
            return Verdict(line.reason, f"refused: {line.reason}")
        if isinstance(line, NoteLine) and line.code == "refused":
            return Verdict(line.text, f"refused: {line.text}")
    return Verdict(None, "; ".join(_word(line) for line in lines) or "nothing to change")


def _word(line: AnyLine) -> str:
    about = subject_text(line.subject) or "fleet"
    if isinstance(line, HoldLine):
        return f"hold {line.id} {line.op} on {about}{_over(line)}"
    if isinstance(line, ActionLine):
        return f"{line.of.value} {line.state.value} on {about}{_over(line)}"
    if isinstance(line, NoteLine):
        return line.code
    return f"{KIND[type(line)]} of {about}"


def _over(line: HoldLine | ActionLine) -> str:
    """The limit that a person has gone over by force."""
    placed = isinstance(line, HoldLine) and line.op == "placed"
    ordered = isinstance(line, ActionLine) and line.state is ActionState.ORDERED
    limit = line.budget if placed or ordered else None
    return f", by force: {limit.used:g} of {limit.limit:g} {limit.of}" if limit is not None else ""
