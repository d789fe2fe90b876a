"""The core: stimuli in, decision lines out, and a state that is the fold of those lines.

A restart folds the stored lines, is told of nodes and deployments again, and goes on: what was decided is
not decided twice, and what was due and not yet written is decided then. ``at`` of every line is the ``now``
that the caller gave.
"""

from collections.abc import Callable

from controller.core.settings import Settings
from controller.core.stimuli import AnyStimulus
from controller.core.views import View
from vocab.catalogue.row import CodeRow
from vocab.lines import AnyLine, FinalLine
from vocab.messages import Desired


class Core:
    """One fleet's decisions. Not thread-safe: one owner feeds it in order.

    ``row`` gives the catalogue's row of a code. After ``take`` and ``tick`` the caller stores the lines in
    one transaction before it tells anybody; if that fails, it makes a new core from what is stored.
    """

    def __init__(self, settings: Settings, row: Callable[[str], CodeRow] | None = None) -> None:
        self._settings = settings

    def fold(self, line: AnyLine) -> None:
        """Take a stored line back in: no decision is taken. In the order in which they were stored."""
        raise NotImplementedError

    def take(self, stimulus: AnyStimulus, now: float) -> list[AnyLine]:
        """Everything that follows from one stimulus, in causal order; empty if it tells nothing new.

        ``now`` is seconds since the epoch and must not go back between calls (the caller keeps it rising).
        """
        raise NotImplementedError

    def tick(self, now: float) -> list[AnyLine]:
        """Everything that is due by ``now``: expiries, silence, probation. Call it at ``next_deadline``."""
        raise NotImplementedError

    def next_deadline(self) -> float | None:
        """The earliest time (seconds since the epoch) at which ``tick`` may have something to say, if any."""
        raise NotImplementedError

    def desired(self, node: str) -> Desired | None:
        """What the node should run, hold and do; generation 0 (the caller numbers it; equal means unchanged).

        None while the core does not know what runs there (it has not reported its replicas since this
        start): the node then keeps what it was told last.
        """
        raise NotImplementedError

    def view(self) -> View:
        """The fleet as of the last ``take`` or ``tick``."""
        raise NotImplementedError

    def final(self, now: float) -> list[FinalLine]:
        """One line a subject: where it stands; the last one is of the fleet."""
        raise NotImplementedError
