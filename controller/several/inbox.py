"""What reached a controller that does not decide: it is stored in the inbox, and the one that decides takes it out.

A batch is acknowledged once it lies there. An order waits for its answer, and is withdrawn if nobody takes it up; one
whose controller died before it could is too old soon, and is not carried out. The transaction that stores what a row
led to takes the row out, so nothing is lost and nothing is thought about twice.
"""

import asyncio
import logging
from collections.abc import Sequence
from secrets import token_hex

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.core.fleet.stimuli import AnyStimulus
from controller.several.submission import Submission
from controller.store import shared
from controller.store.records import Answer, Audit
from controller.store.store import Store
from vocab.clock import Clock
from vocab.errors import Unreachable
from vocab.lines import AnyLine
from vocab.messages import Batch

log = logging.getLogger(__name__)

GROUP = 256  # posts in one transaction
PATIENCE_S = 8.0  # of an order: a new leader decides within 5 s
STALE_S = 30.0  # nobody waits any more for what came of an order so old


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
        self.has_more = False  # than was read last

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
            try:
                submission.lines = _lines.decode(text)
            except msgspec.DecodeError as error:  # of a controller of a newer version
                submission.fail(Unreachable(f"it was carried out; what came of it cannot be read here: {error}"))
                continue
            done.append(submission)
        try:
            await self._withdraw()
        except Unreachable as error:  # what was answered is answered
            log.warning("an order that nobody takes up was not withdrawn: %s", error)
        return done

    async def _withdraw(self) -> None:
        now = self._clock.monotonic()
        for key, (submission, at) in list(self._orders.items()):
            if now - at <= PATIENCE_S:
                continue
            async with self._store.noting() as connection:
                gone = await shared.withdraw(connection, key)
            if gone:
                submission.fail(Unreachable("no controller decides at present: nothing was done; order it again"))
            elif now - at > STALE_S:  # its answer was lost on the way
                submission.fail(Unreachable("what became of it is not known here: look before you order it again"))
            else:
                continue
            del self._orders[key]

    async def read(self, connection: AsyncConnection, most: int) -> list[Submission]:
        """What waits to be thought about, oldest first; what may or can not be is put aside."""
        found = []
        posts = await shared.waiting(connection, most)
        self.has_more = len(posts) >= most
        for post in posts:
            try:
                submission = _submission(post)
            except msgspec.DecodeError as error:  # of a controller of another version
                await self._put_aside(post.id, f"{shared.UNREAD}: {error}")
                continue
            if submission.batch is None and post.age_s > STALE_S:
                await self._put_aside(post.id, f"an order {post.age_s:.0f} s old, for which nobody waits any more")
                continue
            found.append(submission)
        return found

    async def put_aside(self, submission: Submission, why: str) -> None:
        """Keep what cannot be thought about out of the way. Raises Unreachable."""
        assert submission.row is not None
        await self._put_aside(submission.row, why)

    async def _put_aside(self, row: int, why: str) -> None:
        log.error("a row of the inbox is not thought about; it is kept aside", extra={"row": row, "why": why})
        async with self._store.noting() as connection:
            await shared.put_aside(connection, row, why)


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
