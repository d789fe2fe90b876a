"""What a controller has beside it where several share a database: the lease, the inbox and the sightings."""

from controller.several.inbox import Inbox
from controller.several.leader import Leader
from controller.several.reports import Reports
from controller.several.sightings import Sightings
from controller.several.submission import Submission
from controller.store.store import Store
from vocab.clock import Clock


class Shared:
    """The three of them. ``beside``: connections of their own, so that a burst of readers does not cost the lease."""

    def __init__(self, store: Store, beside: Store, name: str, clock: Clock, reports: Reports) -> None:
        self._store = store
        self.leader = Leader(beside, name, clock)
        self.inbox = Inbox(beside, clock)
        self.sightings = Sightings(beside, name, clock, reports)

    async def arrived(self, most: int) -> list[Submission]:
        """What other controllers have heard: what they saw first, then what they posted, at one moment.

        Of one alone (``most`` 1) it is looked whether it can be thought about: nothing else may be blamed on it.
        """
        async with self._store.reading() as connection:
            seen = await self.sightings.read(connection) if most > 1 else []
            return [*seen, *await self.inbox.read(connection, most)]

    async def seen(self) -> list[Submission]:
        """What other controllers have seen, without what they posted."""
        async with self._store.reading() as connection:
            return await self.sightings.read(connection)
