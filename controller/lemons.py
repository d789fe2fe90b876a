"""Tells the Core which cards are lemons, as events of the code ``lemon``: a warning, a reason to look, never a hold."""

from controller.core.fleet.lemons import WINDOW_S, Lemon
from controller.core.fleet.stimuli import Arrived
from controller.deciding.conductor import Conductor, Submission
from controller.store.cards import Card, cards_of
from controller.store.lemons import judged
from controller.store.store import Store
from vocab.clock import Clock
from vocab.events import Event, Evidence, Recovery, Scope, Severity, Source, event_id, rfc3339
from vocab.messages import EventItem

CODE = "lemon"
MOST = 100  # at a time, the worst: more at once is no matter of single cards


class Lemons:
    """``tell``: each lemon once in 28 days, so that what a person has looked at and ended does not come back daily."""

    def __init__(self, store: Store, conductor: Conductor, clock: Clock) -> None:
        self._store = store
        self._conductor = conductor
        self._clock = clock

    async def tell(self) -> None:
        """Judge, and tell of the cards that are lemons where they are now. Raises Unreachable."""
        now = self._clock.now()
        async with self._store.reading() as connection:
            found = [each for each in await judged(connection, now) if each.lemon][:MOST]
            cards = {card.uuid: card for card in await cards_of(connection, [each.gpu for each in found])}
        there = [(each, cards[each.gpu]) for each in found if each.gpu in cards and cards[each.gpu].until is None]
        told = tuple(Arrived(node=card.node, item=EventItem(_event(lemon, card, now))) for lemon, card in there)
        if told:
            await self._conductor.submit(Submission(stimuli=told))


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
