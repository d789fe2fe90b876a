"""A change of shift: what is open, by what comes next, and what has changed. Pure: answers in, sections out."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from corral.leave import allowed_by
from corral.words import places
from vocab.runbooks import runbook

NOBODY = "nothing to do: Corral watches it"
WORTH = frozenset({"error", "critical"})
LOOK = frozenset({"investigate", "contact_support"})  # advice that no repair of Corral's follows
MOST = 12  # lines of one kind
_LIFTED = re.compile(r"\blifted on (\S+)")  # in what came of an order about a hold


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """``since``: seconds since the epoch. ``next``: open incidents by what comes next, those for a person first."""

    since: float
    standing: tuple[str, ...]
    next: dict[str, tuple[str, ...]]
    closed: tuple[str, ...]
    done: tuple[str, ...]
    ordered: tuple[str, ...]
    seen: tuple[str, ...]


def handover(
    since: float,
    fleet: Mapping[str, Any],
    incidents: Sequence[Mapping[str, Any]],
    actions: Sequence[Mapping[str, Any]],
    audit: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
) -> Handover:
    """From what the controller answers; ``incidents`` and ``actions``: those that have ended."""
    gpus = places(fleet)
    return Handover(
        since=since,
        standing=tuple(_standing(fleet)),
        next=_next(fleet),
        closed=tuple(_closed(each, gpus) for each in incidents if each["at"] >= since),
        done=tuple(_done(actions, since)),
        ordered=tuple(_ordered(each, gpus) for each in audit if each["at"] >= since),
        seen=tuple(_seen(events)),
    )


def _standing(fleet: Mapping[str, Any]) -> Iterator[str]:
    counts = fleet["counts"]
    yield f"{counts.get('in_service', 0)} of {counts.get('total', 0)} GPUs in service, {counts.get('free', 0)} free"
    for pause in fleet.get("pauses", ()):
        yield f"PAUSED {pause['scope']} {pause.get('name') or ''}: {pause['why']}".replace("  ", " ")
    for node in fleet["nodes"]:
        yield from (f"{node['node']}: {hold['reason']}" for hold in node.get("holds", ()) if hold.get("until"))
        if node["state"] != "live":
            yield f"{node['node']} is {node['state']}"
    for each in fleet["deployments"]:
        if each["ready"] < each["wanted"]:
            because = f": {each['short_because']}" if each.get("short_because") else ""
            yield f"{each['name']}: {each['ready']} of {each['wanted']} ready{because}"


def _next(fleet: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    waiting: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for action in fleet["actions_waiting"]:
        waiting[action.get("incident") or ""].append(action)
    found: dict[str, list[str]] = defaultdict(list)
    gpus = places(fleet)
    for incident in fleet["incidents_open"]:
        what = _step(incident, waiting[incident["id"]], fleet)
        found[what].append(_incident(incident, gpus))
    return {what: tuple(found[what]) for what in sorted(found, key=lambda what: (_turn(what), what))}


def _turn(what: str) -> int:
    return 0 if what.startswith(("approve", "a person")) else 2 if what == NOBODY else 1


def _step(incident: Mapping[str, Any], waiting: Sequence[Mapping[str, Any]], fleet: Mapping[str, Any]) -> str:
    halted = fleet.get("halted", {})
    for action in waiting:
        if (allow := allowed_by(action, fleet)) is not None:
            return f"approve its {action['of']}: {allow}"
    if incident["id"] in halted:
        return f"a person: {halted[incident['id']]}"
    if waiting:
        return f"{waiting[0]['of']} waits: {waiting[0]['why']}"
    if incident["severity"] in WORTH and incident["recovery"] in LOOK:
        return f"a person looks into it: corral runbook {runbook(incident['code'])}"
    return NOBODY


def _incident(incident: Mapping[str, Any], gpus: Mapping[str, str]) -> str:
    about = name(incident["subject"])
    return f"{incident['id']} {incident['code']} {incident['severity']} on {gpus.get(about, about)}"


def _closed(incident: Mapping[str, Any], gpus: Mapping[str, str]) -> str:
    because = f": {incident['closed_because']}" if incident.get("closed_because") else ""
    return f"{_incident(incident, gpus)}{because}"


def _done(actions: Sequence[Mapping[str, Any]], since: float) -> Iterator[str]:
    counts = Counter(
        (each["of"], each["state"]) for each in actions if each["at"] >= since and each["state"] != "would"
    )
    yield from (f"{count} × {of} {state}" for (of, state), count in sorted(counts.items()))


def _ordered(audit: Mapping[str, Any], gpus: Mapping[str, str]) -> str:
    outcome, subject = str(audit.get("outcome") or ""), str(audit["subject"])
    lifted = _LIFTED.search(outcome) if subject.startswith("hold:") else None
    about = f"{_about(subject, gpus)}{f' on {_about(lifted[1], gpus)}' if lifted else ''}"
    words = f"{stamp(audit['at'])} {audit['actor']}: {audit['act']} {about}".rstrip()
    words = f"{words} ({audit['reason']})" if audit.get("reason") else words
    return f"{words}: {outcome}" if outcome.startswith("refused") else words


def _about(subject: str, gpus: Mapping[str, str]) -> str:
    """A subject of the audit; a GPU as NODE/INDEX where it is known."""
    kind, _, name = subject.partition(":")
    return gpus.get(name, subject) if kind == "gpu" else subject


def _seen(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    counts = Counter(each["code"] for each in events if each["severity"] in WORTH and not each.get("injected"))
    yield from (f"{count} × {code}" for code, count in counts.most_common(MOST))


def name(subject: Mapping[str, Any]) -> str:
    """What a line is about."""
    return next((str(value) for value in subject.values() if value), "the fleet")


def stamp(at: float) -> str:
    """A moment of the last days."""
    return datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%MZ")


def text(made: Handover, width: int) -> Iterator[str]:
    """For people, in lines of this width."""
    yield f"Since {stamp(made.since)}"
    yield from _section("Now", made.standing, width)
    yield "Open incidents, by what comes next" if made.next else "No incident is open."
    for what, incidents in made.next.items():
        yield from _lines(what, width, "  ")
        yield from (line for each in incidents for line in _lines(each, width, "    "))
    for title, lines in (("Closed", made.closed), ("Done", made.done), ("People", made.ordered), ("Seen", made.seen)):
        yield from _section(title, lines, width)


def _section(title: str, lines: Sequence[str], width: int) -> Iterator[str]:
    if lines:
        yield title
    yield from (part for line in lines[-MOST:] for part in _lines(line, width, "  "))
    if len(lines) > MOST:
        yield f"  … and {len(lines) - MOST} before; --json has all"


def _lines(words: str, width: int, indent: str) -> list[str]:
    import textwrap

    shown = "".join(letter if letter.isprintable() else " " for letter in words)
    return textwrap.wrap(shown, width, initial_indent=indent, subsequent_indent=f"{indent}  ") or [indent]
