"""What goes to the process that rehearses, and what it says: one JSON object a line each way."""

import msgspec

from controller.config import Config
from controller.core.decided import Count
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Shaped
from controller.store.past import Span


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What to play: all that is stored of a span, under two policies. Of ``config`` only where it is stored counts."""

    config: Config
    before: Settings
    after: Settings
    shape: Shaped
    span: Span


class Told(msgspec.Struct, frozen=True, kw_only=True, tag_field="told"):
    """Base of what it says."""


class Progress(Told, frozen=True, kw_only=True, tag="progress"):
    """``events`` of the ``stored`` ones have been played, up to ``at`` (None: the first is not yet)."""

    events: int
    stored: int
    at: float | None = None


class Decided(Told, frozen=True, kw_only=True, tag="decided"):
    """The end: all ``events`` were played, from ``first`` on; what each policy decided."""

    events: int
    first: float | None
    decided: tuple[Count, ...]


class Failed(Told, frozen=True, kw_only=True, tag="failed"):
    """There is no answer, and why."""

    why: str


AnyTold = Progress | Decided | Failed
