"""Tells the Core which cards are lemons, as events of the code ``lemon``: a warning, a reason to look, never a hold."""

import asyncio
import math
from collections import Counter

from controller.core.fleet.lemons import DEFAULT, WINDOW_S, Lemon, Thresholds
from controller.core.fleet.stimuli import Arrived
from controller.deciding.conductor import Conductor, Submission
from controller.store.cards import Card, cards_of
from controller.store.lemons import judged
from controller.store.store import Store
from vocab.clock import Clock
from vocab.events import Event, Evidence, Recovery, Scope, Severity, Source, event_id, rfc3339
from vocab.messages import EventItem

CODE = "lemon"
FRESH_S = 3600.0  # of windows of 28 days
MOST = 100  # at a time, the worst: more at once is no matter of single cards


class Lemons:
    """``tell``: each lemon once in 28 days, so that what a person has looked at and ended does not come back daily.

    The judgement of a large fleet takes seconds, so it is made once an hour, whoever asks.
    """

    def __init__(self, store: Store, conductor: Conductor, clock: Clock, thresholds: Thresholds = DEFAULT) -> None:
        self._store = store
        self._conductor = conductor
        self._clock = clock
        self._thresholds = thresholds
        self._found: list[Lemon] = []
        self._judged_at = -math.inf  # on the monotonic clock
        self._one = asyncio.Lock()

    async def found(self) -> list[Lemon]:
        """The cards with signals that count, the worst first, as of the last hour. Raises Unreachable."""
        async with self._one:  # who asks meanwhile gets the same answer
            if self._clock.monotonic() - self._judged_at >= FRESH_S:
                await self._judge()
        return self._found

    async def _judge(self) -> None:
        async with self._store.reading() as connection:
            self._found = await judged(connection, self._clock.now(), self._thresholds)
        self._judged_at = self._clock.monotonic()

    async def tell(self) -> Counter[str]:
        """Judge anew, and tell of the lemons where they are now; how many there are, by board. Raises Unreachable."""
        now = self._clock.now()
        async with self._one:
            await self._judge()
        lemons = [each for each in self._found if each.lemon]
        found = lemons[:MOST]
        async with self._store.reading() as connection:
            cards = {card.uuid: card for card in await cards_of(connection, [each.gpu for each in found])}
        there = [(each, cards[each.gpu]) for each in found if each.gpu in cards and cards[each.gpu].until is None]
        told = tuple(Arrived(node=card.node, item=EventItem(_event(lemon, card, now))) for lemon, card in there)
        if told:
            await self._conductor.submit(Submission(stimuli=told))
        return Counter(each.board or "unknown" for each in lemons)


def _event(lemon: Lemon, card: Card, now: float) -> Event:
    stamp = rfc3339(now)
    return Event(
        id=event_id(None, lemon.gpu, CODE, "", (int(now // WINDOW_S),)),
        at=stamp,
        node=card.node,
        gpu=lemon.gpu,
        code=CODE,
        severity=Severity.WARNING,  # below what opens an incident, without which the policy holds nothing
        recovery=Recovery.INVESTIGATE,
        scope=Scope.GPU,
        source=Source.CORRAL,
        first_at=stamp,
        last_at=stamp,
        fields={"score": lemon.score, "serial": card.serial},
        text=f"score {lemon.score:g}: " + "; ".join(signal.text for signal in lemon.signals),
        evidence=tuple(Evidence(source="corral", at=stamp, line=signal.text) for signal in lemon.signals),
    )
