"""The book of the site's units: the last order for each replica that a unit runs, on disk before anything is asked.

One file, replaced whole. It also remembers which units are down by our own doing: no others are ever started.
"""

from enum import StrEnum
from pathlib import Path

import msgspec

from agent.executor.journal import numbers
from vocab.errors import InputError
from vocab.messages import Order
from vocab.states import ActionState
from wire.disk import write_durably

KEPT = 256  # replicas; past this, those are forgotten whose last order has ended and that are not down by us


class Step(StrEnum):
    """How far an order is."""

    WAITING = "waiting"  # taken on; systemd was not asked
    ASKING = "asking"  # systemd may have been asked
    ENDED = "ended"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One order and what became of it.

    ``taken_at`` is CLOCK_MONOTONIC of the boot. ``pid``, ``invocation`` and ``file_state``: the replica's process, the
    unit's run, and whether it is enabled, when systemd was asked to stop or restart it. ``closed``: we have shut the
    engine's door. ``down``: the unit is stopped, and we have done it.
    """

    order: Order
    boot_id: str
    taken_at: float
    step: Step = Step.WAITING
    unit: str = ""
    pid: int | None = None
    closed: bool = False
    invocation: str = ""
    file_state: str = ""
    down: bool = False
    state: ActionState | None = None
    why: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What makes an order the same order."""
        return self.order.id, self.order.token

    @property
    def replica(self) -> str:
        """Whom it is about."""
        return self.order.replica or ""


class UnitBook:
    """The book in its file. Raises InputError if there is a file that cannot be read: what it knew is not guessed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = _read(path)

    def of(self, replica: str) -> Entry | None:
        """The last order for a replica."""
        return self._entries.get(replica)

    def unfinished(self) -> tuple[Entry, ...]:
        """What has not ended."""
        return tuple(entry for entry in self._entries.values() if entry.step is not Step.ENDED)

    def down(self) -> tuple[Entry, ...]:
        """Whose units are down by us, with nothing under way for them."""
        return tuple(entry for entry in self._entries.values() if entry.down and entry.step is Step.ENDED)

    def is_stale(self, order: Order) -> bool:
        """Whether a later order for its replica was begun here."""
        known = self.of(order.replica or "")
        return known is not None and numbers(order.token) <= numbers(known.order.token)

    def put(self, entry: Entry) -> None:
        """On disk before this returns. Raises OSError."""
        entries = {name: each for name, each in self._entries.items() if name != entry.replica}
        over = [name for name, each in entries.items() if each.step is Step.ENDED and not each.down]
        for name in over[: max(0, len(entries) + 1 - KEPT)]:
            del entries[name]
        entries[entry.replica] = entry
        write_durably(self._path, msgspec.json.encode(entries))
        self._entries = entries


def _read(path: Path) -> dict[str, Entry]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Entry])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(
            f"{path}: cannot be read: {error}; start by hand the units that it may have stopped, then remove the file"
        ) from error
