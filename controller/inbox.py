"""What reached a controller that does not decide: it is stored in the inbox, and the one that decides takes it out.

A batch is acknowledged once it lies there. An order waits for its answer, and is withdrawn if nobody takes it up. The
transaction that stores what a row led to takes the row out, so nothing is lost and nothing is thought about twice.
"""

import asyncio
import logging
from collections.abc import Sequence
from secrets import token_hex

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.stimuli import AnyStimulus
from controller.store import shared
from controller.store.records import Answer, Audit
from controller.store.store import Store
from controller.submission import Submission
from vocab.clock import Clock
from vocab.errors import Unreachable
from vocab.lines import AnyLine
from vocab.messages import Batch

log = logging.getLogger(__name__)

GROUP = 256  # posts in one transaction
PATIENCE_S = 8.0  # of an order: a new leader decides within 5 s


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is in a row."""

    batch: Batch | None = None
    stimuli: tuple[AnyStimulus, ...] = ()
    audit: Audit | None = None


_bodies = msgspec.json.Decoder(Body)
_lines = msgspec.json.Decoder(list[AnyLine])


class Inbox:
    """Both ends of it, for one controller."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._posts: asyncio.Queue[tuple[str, Submission]] = asyncio.Queue()
        self._orders: dict[str, tuple[Submission, float]] = {}  # that wait for an answer, and since when

    async def post(self, submission: Submission) -> list[AnyLine]:
        """Store it; of an order, wait for what it leads to. Raises Unreachable."""
        self._posts.put_nowait((token_hex(16), submission))
        return await submission.stored

    async def run(self) -> None:
        """Store what is posted, until cancelled."""
        while True:
            posts = [await self._posts.get()]
            while len(posts) < GROUP and not self._posts.empty():
                posts.append(self._posts.get_nowait())
            try:
                async with self._store.noting() as connection:
                    await shared.post(connection, [(key, _encoded(submission)) for key, submission in posts])
            except Unreachable as error:
                for _, submission in posts:
                    submission.fail(error)
                continue
            for key, submission in posts:
                if submission.batch is not None:
                    submission.succeed()
                else:
                    self._orders[key] = submission, self._clock.monotonic()

    async def look(self) -> list[Submission]:
        """The orders of which answers have come; what has waited too long is withdrawn. Raises Unreachable."""
        if not self._orders:
            return []
        async with self._store.noting() as connection:
            found = await shared.answers(connection, list(self._orders))
        done = []
        for key, text in found.items():
            submission, _ = self._orders.pop(key)
            submission.lines = _lines.decode(text)
            done.append(submission)
        for key in [key for key, (_, at) in self._orders.items() if self._clock.monotonic() - at > PATIENCE_S]:
            async with self._store.noting() as connection:
                gone = await shared.withdraw(connection, key)
            if gone:
                submission, _ = self._orders.pop(key)
                submission.fail(Unreachable("no controller decides at present: nothing was done; order it again"))
        return done

    async def read(self, connection: AsyncConnection, most: int) -> list[Submission]:
        """What waits to be thought about, oldest first."""
        return [_submission(post) for post in await shared.waiting(connection, most)]

    async def put_aside(self, submission: Submission, why: str) -> None:
        """Keep what cannot be thought about out of the way. Raises Unreachable."""
        assert submission.row is not None
        log.error("a row of the inbox cannot be thought about; it is kept aside", extra={"row": submission.row})
        async with self._store.noting() as connection:
            await shared.put_aside(connection, submission.row, why)


def _encoded(submission: Submission) -> str:
    body = Body(submission.batch, tuple(submission.stimuli), submission.audit)
    return msgspec.json.encode(body).decode()


def _submission(post: shared.Post) -> Submission:
    body = _bodies.decode(post.body)
    return Submission(batch=body.batch, stimuli=body.stimuli, audit=body.audit, row=post.id)


def answered(taken: Sequence[Submission]) -> tuple[list[int], list[Answer]]:
    """Which rows of the inbox are done, and which answers they leave."""
    rows = [(each.row, each) for each in taken if each.row is not None]
    done = [row for row, each in rows if each.batch is not None]
    answers = [Answer(row, msgspec.json.encode(each.lines).decode()) for row, each in rows if each.batch is None]
    return done, answers
