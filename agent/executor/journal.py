"""The intent log: every repair that was taken on, and the step that it is at, on disk before that step is taken.

One file, replaced whole: it holds a page of entries, and after a crash the old page or the new one. Times are
CLOCK_MONOTONIC of the boot that the entry names.
"""

from enum import StrEnum
from pathlib import Path

import msgspec

from vocab.errors import InputError
from vocab.messages import Order
from vocab.states import ActionState
from wire.disk import write_durably

KEPT = 64  # ended entries, so that an order that comes again is known


class Step(StrEnum):
    """How far a repair is: what may have happened is the step itself, what has happened are those before it."""

    WAITING = "waiting"  # taken on; nothing was done
    GATHERING = "gathering"  # evidence is taken; nothing was touched
    STOPPING = "stopping"  # services are being stopped, those that the entry lists and no other
    REPAIRING = "repairing"  # the act itself
    RESTORING = "restoring"  # its outcome is known; services are being started again
    ENDED = "ended"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One order and what became of it. ``stopped``: services to be started again, in the order of stopping."""

    order: Order
    boot_id: str
    taken_at: float
    step: Step = Step.WAITING
    stopped: tuple[str, ...] = ()
    state: ActionState | None = None
    why: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What makes an order the same order."""
        return self.order.id, self.order.token

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs that it takes, the faulty one first."""
        first = (self.order.gpu,) if self.order.gpu is not None else ()
        return tuple(dict.fromkeys((*first, *self.order.gpus)))


class Page(msgspec.Struct, frozen=True):
    """The file. ``newest``: the greatest token of any repair that was ever begun here."""

    newest: tuple[int, int] = (0, 0)
    entries: tuple[Entry, ...] = ()


class Journal:
    """The page in its file. Raises InputError if there is a file that cannot be read: what it knew is not guessed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._page = _read(path)

    @property
    def newest(self) -> tuple[int, int]:
        """The greatest token that was begun."""
        return self._page.newest

    def find(self, order: Order) -> Entry | None:
        """The entry of this very order."""
        return next((each for each in self._page.entries if each.key == (order.id, order.token)), None)

    def unfinished(self) -> tuple[Entry, ...]:
        """What has not ended, oldest first."""
        return tuple(each for each in self._page.entries if each.step is not Step.ENDED)

    def put(self, entry: Entry) -> None:
        """On disk before this returns. Raises OSError."""
        entries = [each for each in self._page.entries if each.key != entry.key]
        ended = [each for each in entries if each.step is Step.ENDED]
        dropped = {each.key for each in ended[: max(0, len(ended) - KEPT)]}
        kept = tuple(each for each in entries if each.key not in dropped)
        page = Page(max(self._page.newest, numbers(entry.order.token)), (*kept, entry))
        write_durably(self._path, msgspec.json.encode(page))
        self._page = page


def numbers(token: str) -> tuple[int, int]:
    """A token as (epoch, number) to compare; (0, 0) if it is none."""
    epoch, _, number = token.partition(".")
    return (int(epoch), int(number)) if epoch.isdecimal() and number.isdecimal() else (0, 0)


def _read(path: Path) -> Page:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Page)
    except FileNotFoundError:
        return Page()
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(
            f"{path}: cannot be read: {error}; start by hand what a repair may have stopped, then remove the file"
        ) from error
