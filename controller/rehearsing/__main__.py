"""``python -m controller.rehearsing``: a brief on standard input; what is told on standard output as it goes.

Nobody ends it but its parent: once that has gone, the next line finds no reader. It works below others, on one core,
and gives up before it takes more memory than ``MOST_BYTES``.
"""

import asyncio
import contextlib
import os
import resource
import sys
import time

import msgspec

from controller.core.decided import compared
from controller.core.rehearsal import Rehearsal, Scene
from controller.rehearsing.told import AnyTold, Brief, Decided, Failed, Progress
from controller.store import past, read
from controller.store.store import Store
from vocab.errors import CorralError, Refused
from vocab.messages import EventItem

SAID_S = 0.5  # between two lines
NICE = 10
MOST_BYTES = 2 * 1024**3  # of memory: a month of what leads to decisions takes about 2 KB an event and policy


def main() -> int:
    """Play what is asked for; the exit code."""
    with contextlib.suppress(OSError):  # a unit may forbid it
        os.nice(NICE)
    brief = msgspec.json.decode(sys.stdin.buffer.readline(), type=Brief)
    try:
        _say(asyncio.run(_play(brief)))
    except CorralError as error:
        _say(Failed(why=str(error)))
    except BrokenPipeError:
        return 1
    return 0


def _say(told: AnyTold) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
    sys.stdout.buffer.flush()


async def _play(brief: Brief) -> Decided:
    store = Store(brief.config.place)
    try:
        return await _both(store, brief)
    finally:
        await store.close()


async def _both(store: Store, brief: Brief) -> Decided:
    stored = await past.count(store, brief.span)
    _say(Progress(events=0, stored=stored))
    async with store.reading() as connection:
        scene = Scene(facts=tuple(await read.node_facts(connection)), shape=brief.shape)
    one = Rehearsal(brief.before, scene)
    other = one if brief.after == brief.before else Rehearsal(brief.after, scene)
    events, said_at = 0, time.monotonic()
    async for told in past.told(store, brief.span):
        for each in {id(one): one, id(other): other}.values():
            each.hear(told)
        events += isinstance(told.item, EventItem)
        if time.monotonic() - said_at >= SAID_S:
            _bounded()
            said_at = time.monotonic()
            _say(Progress(events=events, stored=stored, at=told.at))
    one.end()
    other.end()
    first = await past.first_at(store, brief.span)
    return Decided(events=events, first=first, decided=compared(one.tally, other.tally))


def _bounded() -> None:
    """Raises Refused once it has taken too much."""
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if taken > MOST_BYTES:
        raise Refused(
            f"the past of this fleet takes more than {MOST_BYTES // 1024**3} GiB to play: compare the policies over"
            " recordings, with `corral policy test`"
        )


if __name__ == "__main__":
    sys.exit(main())
