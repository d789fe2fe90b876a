"""What an alert is: when it speaks, to whom, and what it says. A rule file is a list of these and of recordings.

Durations in an expression are written as in PromQL (``[5m]``, ``offset 15m``); one that is compared with seconds
stands in angle brackets: ``> <10m>``. So a build for a run of fifteen minutes can divide all of them alike.
"""

from enum import StrEnum

import msgspec

from vocab.runbooks import INSTALLED

# What a condition is about, for a text: "GPU UUID of NODE", or the node alone.
PLACE = "{{ if $labels.gpu }}GPU {{ $labels.gpu }} of {{ end }}{{ $labels.node }}"


class Severity(StrEnum):
    """Who hears of it. A page wakes a person; a ticket is for the day; info is for other rules and boards only."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says beside its summary, so that who is woken need not look it up."""

    users: str  # what they feel
    done: str  # by Corral, already
    waits: str  # what it waits for
    command: str  # the one to type first
    sleep: str  # how long it is safe to go on sleeping

    def text(self) -> str:
        """Its five lines."""
        return (
            f"Users: {self.users}\nCorral did: {self.done}\nIt waits for: {self.waits}\n"
            f"First: `{self.command}`\nSafe to sleep: {self.sleep}"
        )


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A rule. ``wait``: how long the expression must hold; ``keep``: how long it fires on, against flapping.

    ``says``: what it means and what to do, with a command in backticks; a page's own five lines in its stead.
    """

    name: str
    severity: Severity
    expr: str
    wait: str = ""
    keep: str = ""
    summary: str
    says: str | Page

    @property
    def runbook(self) -> str:
        """Where its runbook lies on an installed machine."""
        return f"{INSTALLED}/{self.name}.md"

    @property
    def description(self) -> str:
        """What it says below its summary."""
        return self.says.text() if isinstance(self.says, Page) else self.says


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A series that rules, boards or people use more than once."""

    name: str
    expr: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one subject: ``head`` is said at the top of their file."""

    subject: str
    head: str
    rules: tuple[Alert | Recording, ...]

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Those that alert."""
        return tuple(rule for rule in self.rules if isinstance(rule, Alert))


def conditions(*codes: str) -> str:
    """The open conditions of these codes, each with what it is about; it looks past a restart of the controller."""
    listed = "|".join(codes)
    opened = f'last_over_time(corral_condition_opened_timestamp_seconds{{code=~"{listed}"}}[2m])'
    return f"max by (code, node, gpu, replica, deployment, device) ({opened})"


def ticket_of_conditions(
    name: str, codes: tuple[str, ...], *, wait: str, summary: str, says: str, keep: str = "5m"
) -> Alert:
    """The commonest ticket: a condition of one of these codes has been open for a while."""
    return Alert(
        name=name, severity=Severity.TICKET, expr=conditions(*codes), wait=wait, keep=keep, summary=summary, says=says
    )
