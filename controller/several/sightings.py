"""Who and what was seen, told between controllers: one row each every two seconds, soon forgotten.

The one that decides hears of nodes that report to another; the others show what those say. Events and orders do not
go this way: they are never lost (``controller.several.inbox``), and a sighting may be.
"""

import asyncio
import contextlib
import logging

import msgspec
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.fleet.stimuli import AnyStimulus
from controller.several.reports import Reports
from controller.several.submission import Submission
from controller.store import shared
from controller.store.store import Store
from vocab.clock import Clock
from vocab.errors import Unreachable
from vocab.messages import Batch

log = logging.getLogger(__name__)

EVERY_S = 2.0
YOUNG_S = 6.0  # what is older than three rows says nothing of now
PRESENT_S = 10.0  # a controller that has written no row for so long is not there
LATE_S = 3.0  # a row that comes later than that is late: what its controller heard meanwhile is not known yet


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is in a row: the latest of each node that reported, without its records, and what observers saw."""

    batches: tuple[Batch, ...] = ()
    stimuli: tuple[AnyStimulus, ...] = ()


_seen = msgspec.json.Decoder(Seen)


class Sightings:
    """What this controller sees, for the others, and what they see."""

    def __init__(self, store: Store, name: str, clock: Clock, reports: Reports) -> None:
        self._store = store
        self._clock = clock
        self._reports = reports
        self._name = name
        self._number = 0
        self._batches: dict[str, tuple[Batch, float]] = {}
        self._stimuli: list[tuple[AnyStimulus, float]] = []
        self._latest: dict[str, float] = {}  # of each node: the stamp of its latest report, whoever had it
        self._known: dict[str, int] = {}  # of each other controller: its last row that we read
        self._present: dict[str, float] = {}  # when we did
        self._told_by: dict[str, str] = {}  # of each node that reports to another controller: which
        self._waited_at = 0.0
        self._moved = asyncio.Event()

    def note(self, submission: Submission) -> None:
        """Remember what came in, for the next row."""
        now = self._clock.monotonic()
        batch = submission.batch
        if batch is None:
            if submission.audit is None:
                self._stimuli += [(stimulus, now) for stimulus in submission.stimuli]
            return
        before = self._batches.get(batch.node)
        merged = _merged(before[0], batch) if before is not None else replace(batch, items=(), facts=None)
        self._batches[batch.node] = merged, now
        self._latest[batch.node] = batch.at
        self._told_by.pop(batch.node, None)
        if batch.replicas is not None:
            self._moved.set()  # a drain may wait for it

    async def run(self) -> None:
        """Write a row now and then, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await self._moved.wait()
            self._moved.clear()
            try:
                await self.write()
            except Unreachable as error:
                log.debug("a sighting was not stored: %s", error)

    async def write(self) -> None:
        """Write a row with what came in since the last. Raises Unreachable."""
        self._number += 1
        row = shared.Sighting(self._name, self._number, msgspec.json.encode(self._take()).decode())
        async with self._store.noting() as connection:
            await shared.sight(connection, row)

    def _take(self) -> Seen:
        now = self._clock.monotonic()
        batches = tuple(batch for batch, at in self._batches.values() if now - at < YOUNG_S)
        stimuli = tuple(stimulus for stimulus, at in self._stimuli if now - at < YOUNG_S)
        self._batches.clear()
        self._stimuli.clear()
        alone = all(now - at > PRESENT_S for at in self._present.values())
        return Seen() if alone else Seen(batches, stimuli)

    async def read(self, connection: AsyncConnection) -> list[Submission]:
        """What other controllers have seen since the last time; of each node only what is news to us."""
        now = self._clock.monotonic()
        found: list[Submission] = []
        for row in await shared.sighted(connection, self._name, self._known, YOUNG_S):
            self._known[row.controller], self._present[row.controller] = row.number, now
            try:
                seen = _seen.decode(row.body)
            except msgspec.DecodeError as error:  # of a controller of another version
                log.debug("a sighting of %s cannot be read: %s", row.controller, error)
                continue
            news = [batch for batch in seen.batches if not self._is_late(batch)]
            for batch in news:
                self._latest[batch.node] = batch.at
                self._told_by[batch.node] = row.controller
                self._reports.take(batch)
            found += [Submission(batch=batch) for batch in news]
            found += [Submission(stimuli=seen.stimuli)] if seen.stimuli else []
        return found

    def waited_for(self) -> list[str]:
        """Once a second: the nodes that report to a controller whose next row is late.

        They may have reported there: until that controller counts as gone, its lateness is not their silence.
        """
        now = self._clock.monotonic()
        late = {name for name, at in self._present.items() if LATE_S < now - at <= PRESENT_S}
        if not late or now - self._waited_at < 1.0:
            return []
        self._waited_at = now
        return [node for node, name in self._told_by.items() if name in late]

    def _is_late(self, batch: Batch) -> bool:
        """Whether the node has said something newer elsewhere. A stamp far behind is of a clock that was set back."""
        return 0.0 < self._latest.get(batch.node, batch.at) - batch.at < 2 * YOUNG_S


def _merged(before: Batch, after: Batch) -> Batch:
    """Two reports of a node as one: only what changed was in each."""
    gpus = {status.gpu: status for status in (*before.gpus, *after.gpus)}
    replicas = before.replicas if after.replicas is None else after.replicas
    return replace(after, items=(), facts=None, gpus=tuple(gpus.values()), replicas=replicas)
