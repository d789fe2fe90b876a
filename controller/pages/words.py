"""States, figures and decision lines as words and shapes for people. The same words as ``corral explain`` uses.

A state is told by a shape and a word, and coloured beside that: never by its colour alone.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from controller.core.fleet.views import View
from vocab.lines import (
    ActionLine,
    AnyLine,
    ConditionLine,
    EventLine,
    HoldLine,
    IncidentLine,
    NoteLine,
    StateLine,
    Subject,
)

TONES: Mapping[str, frozenset[str]] = {
    "good": frozenset({"healthy", "ready", "live", "done", "in_service", "right", "cleared", "closed", "info"}),
    "warn": frozenset({"degraded", "stalled", "waiting", "warning", "probation", "suspect"}),
    "held": frozenset({"cordoned", "fenced", "quarantined", "stranded", "would", "placed", "would_place"}),
    "busy": frozenset({"draining", "repairing", "validating", "starting", "ordered", "running"}),
    "bad": frozenset({"failed", "lost", "crash_loop", "critical", "error", "timed_out", "refused", "open", "wrong"}),
}
SHAPES: Mapping[str, str] = {
    "healthy": "●", "degraded": "▲", "suspect": "▲", "probation": "◐", "cordoned": "⊘", "fenced": "⊟",
    "quarantined": "⊠", "draining": "▼", "repairing": "✚", "validating": "◇", "failed": "✖", "lost": "✖",
    "unknown": "?", "removed": "–",
}  # fmt: skip
OF_TONES: Mapping[str, str] = {"good": "●", "warn": "▲", "held": "⊘", "busy": "◆", "bad": "✖", "none": "–"}


def tone(word: object) -> str:
    """The colour group of a state's word."""
    text = str(word)
    return next((name for name, words in TONES.items() if text in words), "none")


def shape(word: object) -> str:
    """The shape of a state's word."""
    return SHAPES.get(str(word)) or OF_TONES[tone(word)]


def plain(word: object) -> str:
    """A word of the wire for people: ``in_service`` is "in service"."""
    return str(word).replace("_", " ")


def standing(incident: IncidentLine) -> str:
    """Whether an incident is open: "updated" only says how its line came to be."""
    return "closed" if incident.state == "closed" else "open"


SHOWN_BY = {"gpus": "the map", "nodes": "the map", "incidents": "the list of incidents"}  # the paths of the interface
_LISTED = re.compile(r"; /api/v1/([a-z/_-]+)(?:\?\S*)? lists them")


def without_paths(text: str) -> str:
    """Why something was not found, with the page that shows what there is and no path of the interface."""
    return _LISTED.sub(lambda found: f"; {SHOWN_BY[found[1]]} shows them" if found[1] in SHOWN_BY else "", text)


# -- figures ------------------------------------------------------------------------------------------------


def clock(at: float) -> str:
    """The time of day, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def stamp(at: float) -> str:
    """Day and time, in UTC, to sort by."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def moment(at: float) -> str:
    """For machines: RFC 3339."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age(seconds: float) -> str:
    """How long, in the largest unit that says enough."""
    if seconds < 60:
        return f"{max(0, round(seconds))} s"
    if seconds < 3600:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 86400 else f"{seconds / 86400:.1f} d"


def share(value: float | None) -> str:
    """A ratio in percent; a dash for what was not read."""
    return "–" if value is None else f"{round(value * 100)} %"


def figure(value: float | None, unit: str = "", digits: int = 0) -> str:
    """A number with its unit; a dash for what was not read."""
    return "–" if value is None else f"{value:.{digits}f} {unit}".rstrip()


def gib(value: float | None, digits: int = 0) -> str:
    """Bytes in GiB."""
    return "–" if value is None else f"{value / 2**30:.{digits}f} GiB"


_GPU = re.compile(r"\bgpu:([^\s;,]+)")  # as the audit writes a subject

# -- lines --------------------------------------------------------------------------------------------------


class Names:
    """Short names of subjects: "n1 GPU 3" for a UUID of this fleet."""

    def __init__(self, view: View) -> None:
        several = len(view.nodes) > 1
        self._gpus = {
            gpu.uuid: f"{node.node} GPU {gpu.index}" if several else f"GPU {gpu.index}"
            for node in view.nodes
            for gpu in node.gpus
        }

    def gpu(self, uuid: str) -> str:
        """The name of a GPU."""
        return self._gpus.get(uuid) or uuid[:16]

    def within(self, text: str) -> str:
        """A text of the audit with the short names of its GPUs."""
        return _GPU.sub(lambda found: self.gpu(found[1]), text)

    def of(self, subject: Subject) -> str:
        """The name of anything."""
        if subject.gpu is not None:
            return self.gpu(subject.gpu)
        for kind in ("node", "replica", "deployment", "link", "switch"):
            name = getattr(subject, kind)
            if name is not None:
                return f"{kind} {name}"
        return "fleet"


def kind(line: AnyLine) -> str:
    """What a line tells of."""
    return type(line).__name__.removesuffix("Line").lower()


def weight(line: AnyLine) -> str:
    """The word that colours a line."""
    match line:
        case EventLine(event=event):
            return str(event.severity)
        case ConditionLine():
            return "cleared" if line.state == "cleared" else str(line.severity)
        case IncidentLine():
            return "closed" if line.state == "closed" else str(line.severity)
        case StateLine():
            return line.to
        case HoldLine():
            return line.op if line.op in {"placed", "would_place", "refused"} else "done"
        case ActionLine():
            return str(line.state)
        case _:
            return "none"


def sentence(line: AnyLine, names: Names) -> str:
    """A line as a sentence."""
    match line:
        case EventLine(event=event):
            times = f" ×{event.count}" if event.count > 1 else ""
            return f"saw {event.code}{times}: {event.severity}, advice {plain(event.recovery)}. {event.text}"
        case ConditionLine():
            return f"condition {line.code} {line.state} (clears on {line.clears_on})"
        case IncidentLine():
            return f"incident {line.state}: {line.code}" + (f", {line.closed_because}" if line.closed_because else "")
        case StateLine():
            return f"{line.from_ or 'new'} → {line.to}: {line.why}"
        case HoldLine():
            return f"hold {plain(line.op)} by {line.owner}: {line.reason}"
        case ActionLine():
            return _action(line, names)
        case NoteLine():
            return f"{plain(line.code)}: {line.text}"
        case _:
            return line.state


def _action(line: ActionLine, names: Names) -> str:
    target = line.target
    there = target.by_node.items() if target is not None else ()
    where = " and".join(f" on {node} {' + '.join(map(names.gpu, gpus))}" for node, gpus in there)
    strikes = f" — disrupts {', '.join(names.of(each) for each in line.disrupts)}" if line.disrupts else ""
    budget = f" [{line.budget.of}: {line.budget.used:g} of {line.budget.limit:g}]" if line.budget else ""
    return f"{plain(line.of)} {plain(line.state)}{where}: {line.why}{strikes}{budget}"


def evidence(line: AnyLine) -> list[str]:
    """The raw lines that prove an event, as they were read."""
    return [proof.line for proof in line.event.evidence if proof.line] if isinstance(line, EventLine) else []


def causal(lines: list[AnyLine]) -> list[AnyLine]:
    """Of one moment, what a thing has become comes after what made it so."""
    return sorted(lines, key=lambda line: (line.at, isinstance(line, StateLine)))
