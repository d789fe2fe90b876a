"""What ``sinfo`` says of nodes. Pure: its output in, nodes out.

Three forms: JSON of 22.05 (``nodes`` with ``state`` and ``state_flags``), JSON of 23.11 and later (a list of states,
by node or grouped), and the plain ``%N|%T|%E`` where Slurm was built without JSON. In the plain one the reason is
last, for it may hold any character.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from vocab.errors import Unreachable

BUSY = frozenset({"ALLOCATED", "MIXED"})
SEEN = BUSY | {"IDLE"}  # states in which slurmctld knows what runs
MARKS = {  # what may follow a state in the plain form
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWERING_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
PLAIN = {  # words of the plain form that stand for several
    "DRAINED": ("IDLE", "DRAIN"),
    "DRAINING": ("ALLOCATED", "DRAIN"),
    "COMPLETING": ("ALLOCATED", "COMPLETING"),
    "RESERVED": ("IDLE", "RESERVED"),
    "PLANNED": ("IDLE", "PLANNED"),
    "MAINT": ("IDLE", "MAINTENANCE"),
}
BLIND = frozenset({"NOT_RESPONDING", "POWERED_DOWN", "POWERING_UP", "POWERING_DOWN", "REBOOT_ISSUED"})


class SlurmNode(msgspec.Struct, frozen=True):
    """A node as slurmctld has it. ``states``: base state and flags, in capitals; ``reason`` empty if there is none."""

    name: str
    states: frozenset[str]
    reason: str

    @property
    def is_drained(self) -> bool:
        """Whether it takes no new jobs because somebody said so."""
        return "DRAIN" in self.states

    @property
    def is_down(self) -> bool:
        """Whether slurmctld itself has taken it out; the reason is then its own."""
        return "DOWN" in self.states and not self.is_drained

    @property
    def busy(self) -> bool | None:
        """Whether jobs run there, or have not ended; None if slurmctld cannot know."""
        if self.states & BLIND or not self.states & SEEN:
            return None
        return bool(self.states & BUSY) or "COMPLETING" in self.states


def of_json(text: str) -> list[SlurmNode]:
    """Nodes of ``sinfo --json``. Raises Unreachable if it is not that."""
    try:
        body = msgspec.json.decode(text)
        found = list(_groups(body["sinfo"]) if "sinfo" in body else map(_node, body["nodes"]))
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError) as error:
        raise Unreachable(f"sinfo --json answers in a form that is not known: {error!r}") from error
    if not found and body.get("errors"):
        raise Unreachable(f"sinfo --json: {_errors(body['errors'])}")
    return found


def _node(body: dict[str, Any]) -> SlurmNode:
    return SlurmNode(body["name"], _states(body["state"], body.get("state_flags", ())), _reason(body.get("reason")))


def _groups(groups: list[dict[str, Any]]) -> Iterator[SlurmNode]:
    for group in groups:
        for name in group["nodes"]["nodes"]:
            yield SlurmNode(name, _states(group["node"]["state"], ()), _reason(group.get("reason")))


def _states(state: str | list[str], flags: list[str] | tuple[str, ...]) -> frozenset[str]:
    named = state.split("+") if isinstance(state, str) else state
    return frozenset(word.upper() for word in (*named, *flags))


def _reason(given: Any) -> str:
    text = given.get("description", "") if isinstance(given, dict) else given or ""
    return "" if text == "none" else str(text)


def _errors(errors: list[Any]) -> str:
    return "; ".join(str(one.get("error", one)) if isinstance(one, dict) else str(one) for one in errors)


def of_plain(text: str) -> list[SlurmNode]:
    """Nodes of ``sinfo -N -h -o '%N|%T|%E'``; a node of two partitions stands there twice."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition("|")
        state, cut, reason = rest.partition("|")
        if cut:
            found[name] = SlurmNode(name, _of_word(state), _reason(reason))
    return list(found.values())


def _of_word(word: str) -> frozenset[str]:
    base = word.rstrip("".join(MARKS))
    marks = [MARKS[mark] for mark in word[len(base) :]]
    upper = base.upper()
    return frozenset((*PLAIN.get(upper, (upper,)), *marks))


_BOOT = re.compile(r"^BOOT_TIME\s*=\s*(\S+)", re.MULTILINE)


def boot_time(text: str) -> str:
    """When slurmctld began, from ``scontrol show config``; empty if it does not say."""
    found = _BOOT.search(text)
    return found[1] if found else ""
