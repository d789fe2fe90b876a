"""The core: stimuli in, decision lines out, and a state that is the fold of those lines.

A restart folds the stored lines, is told of nodes and deployments again, and goes on: what was decided is
not decided twice, and what was due and not yet written is decided then. ``at`` of every line is the ``now``
that the caller gave.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec.structs import replace

from controller.core import look, preview, words
from controller.core.album import Album
from controller.core.desired import desired
from controller.core.faults import (
    black_hole,
    claims,
    conditions,
    doubt,
    drift,
    forgotten,
    incidents,
    liveness,
    matrix,
    suspects,
)
from controller.core.fleet.fleet import Fleet
from controller.core.fleet.ledger import COUNTED
from controller.core.fleet.order import in_order
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import AnyStimulus, Asked
from controller.core.fleet.views import OwnerOrder, View
from controller.core.fork import fork
from controller.core.hearing import hear
from controller.core.placement import deployments
from controller.core.policy import demotion
from controller.core.preview import Preview
from controller.core.repairs import closing, departure, holds, idle_reset, maintenance, others, workflow
from controller.core.replicas import actions, burial, found, owner_orders, recreate, restart, retire, site_units, whole
from vocab.catalogue import codes
from vocab.catalogue.row import CodeRow
from vocab.events import Event
from vocab.lines import AnyLine, EventLine, FinalLine
from vocab.messages import Desired, NodeFacts

RULES: tuple[Callable[[Fleet, float], Iterable[AnyLine]], ...] = (
    liveness.judge,
    claims.judge,
    actions.follow,
    conditions.over_by_reboot,
    conditions.over_by_end,
    forgotten.close,
    black_hole.judge,
    departure.close,
    departure.receive,
    drift.judge,
    maintenance.over,
    holds.for_faults,
    doubt.judge,
    demotion.judge,
    black_hole.hold,
    suspects.hold_repeated,
    holds.replaced_fences,
    closing.converge,
    others.judge,
    restart.call,
    found.leave,
    site_units.give_back,
    whole.keep_whole,
    burial.bury,
    retire.cut_off,
    deployments.converge,
    workflow.advance,
    idle_reset.when_idle,
    retire.off_suspects,
    recreate.one_by_one,
    retire.asked,
)
MOST_ROUNDS = 100  # each round decides something; one stimulus never needs this many


class Core:
    """One fleet's decisions. Not thread-safe: one owner feeds it in order.

    ``row`` gives the catalogue's row of a code. After ``take`` and ``tick`` the caller stores the lines in
    one transaction before it tells anybody; if that fails, it makes a new core from what is stored.
    """

    def __init__(self, settings: Settings | None = None, row: Callable[[str], CodeRow] = codes.row) -> None:
        self._fleet = Fleet(settings or Settings(), row)
        self._album = Album(self._fleet)
        self._now = 0.0
        self._has_rested_at: float | None = None  # when the rules last had nothing to say

    def fold(self, line: AnyLine) -> None:
        """Take a stored line back in: no decision is taken. In the order in which they were stored."""
        self._fleet.fold(line)
        self._now = max(self._now, line.at)

    def take(self, stimulus: AnyStimulus, now: float) -> list[AnyLine]:
        """Everything that follows from one stimulus, in causal order; empty if it tells nothing new.

        ``now`` is seconds since the epoch and must not go back between calls (the caller keeps it rising).
        """
        self._begin(now)
        said = self._say(hear(self._fleet, stimulus, now))
        if self._has_rested_at == now and self._is_only_history(said):
            said += self._examine(now)
            if len(said) == 1:  # the rules have come to rest at this moment, and it gives them nothing to look at
                return said
        return self._conclude(said, now)

    def recall(self, told: Iterable[AnyStimulus], now: float) -> list[AnyLine]:
        """Everything that follows from what a core is told at its start: no rule looks at a part of the fleet."""
        self._begin(now)
        said = [line for stimulus in told for line in self._say(hear(self._fleet, stimulus, now))]
        return self._conclude(said, now)

    def see(self, stimulus: AnyStimulus, now: float) -> bool:
        """Take in what is so, and conclude nothing; whether anything is left to be concluded, from this or before.

        Not for what a spool holds or a person orders. What follows from it is concluded at the next ``take`` or
        ``tick``: a report that tells nothing new needs neither, and where another controller's core decides, its
        lines are folded instead.
        """
        self._begin(now)
        deque(hear(self._fleet, stimulus, now), maxlen=0)
        return self._fleet.stirred

    def obey(self, settings: Settings) -> None:
        """Decide by these from now on: another controller's core decides, and has been told of them."""
        ours = replace(settings, epoch=self._fleet.settings.epoch)
        if ours != self._fleet.settings:
            self._fleet.settings = ours
            self._fleet.touch_all()

    def tick(self, now: float) -> list[AnyLine]:
        """Everything that is due by ``now``: expiries, silence, probation. Call it at ``next_deadline``."""
        self._begin(now)
        self._fleet.ledger.forget(now)
        self._fleet.stirred = self._fleet.expire(now) or self._fleet.stirred
        self._fleet.is_tick = True
        said = self._conclude([], now)
        self._fleet.is_tick = False
        return said

    def preview(self, asked: Asked, now: float) -> Preview:
        """What an order of a person would lead to at once, thought out on a copy: nothing changes here."""
        twin = Core(self._fleet.settings, self._fleet.row)
        twin._fleet, twin._now = fork(self._fleet), self._now
        lines = [*twin.take(asked, now), *twin.tick(now)]
        return preview.draw(self._fleet, twin._fleet, asked, lines, now)

    def next_deadline(self) -> float | None:
        """The earliest time (seconds since the epoch) at which ``tick`` may have something to say, if any."""
        return self._fleet.agenda.next()

    def desired(self, node: str) -> Desired | None:
        """What the node should run, hold and do; generation 0 (the caller numbers it; equal means unchanged).

        None while the core does not know what runs there (it has not reported its replicas since this
        start): the node then keeps what it was told last.
        """
        return desired(self._fleet, node)

    def untold(self) -> Collection[str] | None:
        """The nodes whose ``desired`` may be another than when this was last asked; None: that of any node."""
        work = self._fleet.work
        found, work.untold = work.untold, {}
        every, work.all_untold = work.all_untold, False
        return None if every else found

    def inventories(self, told: Iterable[str]) -> list[NodeFacts] | None:
        """What is on these nodes, and on those that have won or lost a GPU since this was last asked.

        Without what they claim and another has; None if what they say is what they have.
        """
        claims = self._fleet.inventory.claims
        moved, claims.moved = claims.moved, {}
        if not claims and not moved:
            return None
        return [facts for facts in map(self._fleet.inventory.own, dict.fromkeys([*told, *moved])) if facts is not None]

    def lasting(self, facts: NodeFacts) -> NodeFacts:
        """What a node has said, as it must be recalled after a restart: with the GPUs that it cannot read now."""
        return self._fleet.inventory.lasting(facts)

    def view(self) -> View:
        """The fleet as of the last ``take`` or ``tick``."""
        return self._album.view(self._now)

    def draw(self, most: int) -> None:
        """Draw so much of the next ``view`` already, in nodes."""
        self._album.draw(self._now, most)

    def silent(self) -> dict[str, str]:
        """The nodes that are not live, each with the address of its agent; those that never gave one are left out."""
        return look.silent(self._fleet)

    def versions(self) -> matrix.Matrix:
        """Which versions run where."""
        return matrix.matrix(self._fleet)

    def orders(self) -> tuple[OwnerOrder, ...]:
        """What managers and owners of others' work are asked to do, as of the last ``take`` or ``tick``."""
        return owner_orders.orders(self._fleet, self._now)

    def final(self, now: float) -> list[FinalLine]:
        """One line a subject: where it stands; the last one is of the fleet."""
        return look.final(self._fleet, now)

    def _begin(self, now: float) -> None:
        self._now = max(self._now, now)
        self._fleet.begin(now)

    def _say(self, lines: Iterable[AnyLine]) -> list[AnyLine]:
        """Fold each line before the next is drawn: a rule sees what it has decided."""
        said = []
        for line in lines:
            self._fleet.fold(line)
            said.append(line)
        return said

    def _conclude(self, said: list[AnyLine], now: float) -> list[AnyLine]:
        self._fleet.look_up(now)
        if said or self._fleet.stirred:
            self._fleet.stirred = False
            self._settle(said, now)
        if self._fleet.work.words:
            said += self._say(words.announce(self._fleet, now))
        return in_order(said)

    def _is_only_history(self, said: list[AnyLine]) -> bool:
        """Whether nothing was heard but an event that no condition, incident or count rests on so far."""
        if self._fleet.stirred or len(said) != 1 or not isinstance(said[0], EventLine):
            return False
        event, ledger = said[0].event, self._fleet.ledger
        rests = ledger.conditions_of_event.get(event.id) or ledger.incidents_of_event.get(event.id)
        return not rests and event.code not in COUNTED

    def _settle(self, said: list[AnyLine], now: float) -> None:
        """Apply the rules until none has anything to say."""
        for _ in range(MOST_ROUNDS):
            decided = self._examine(now)
            for rule in RULES:
                decided += self._say(rule(self._fleet, now))
            if not decided:
                self._fleet.work.rest()
                self._has_rested_at = now
                return
            said += decided
        raise AssertionError(f"the rules do not come to rest: {said[-1]}")

    def _examine(self, now: float) -> list[AnyLine]:
        """What the events mean that came in since the last time."""
        ledger = self._fleet.ledger
        events = (ledger.events[key] for key in ledger.take_unexamined())
        return self._say(line for event in events for line in _meaning(self._fleet, event, now))


def _meaning(fleet: Fleet, event: Event, now: float) -> Iterator[AnyLine]:
    """What one event means: its condition, then its incident, then what the two have to do with each other."""
    yield from conditions.judge(fleet, event, now)
    yield from incidents.judge(fleet, event, now)
    yield from conditions.gather(fleet, event, now)
