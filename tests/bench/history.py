"""What a question about the past costs over a million stored events, and what a restart reads of them.

    python -m tests.bench.history [--events 1000000] [--nodes 12500] [--database URL]

The events go into the store as a controller commits them, over thirty days, with their lines; one of a thousand has
led to something. Then what the API asks of a history is asked, each question twenty times, and what a core that begins
reads is read once.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from controller.config import Config
from controller.store import pages, read, recall
from controller.store.pages import EventFilter
from controller.store.records import Write
from controller.store.store import Store
from vocab.catalogue.codes import row
from vocab.events import Event, Severity, Source, event_id, rfc3339
from vocab.lines import ConditionLine, EventLine, Subject
from vocab.states import ClearsOn

BATCH = 5000
MONTH_S = 30 * 86400.0
GPUS = 8
OFTEN, SELDOM = "xid:13", "xid:95"
TIMES = 20


def events(count: int, nodes: int, until: float) -> Iterator[Event]:
    """From the oldest on."""
    for number in range(count):
        code = SELDOM if number % 1000 == 0 else OFTEN
        known, name, gpu = row(code), f"gpu-{number % nodes:05d}", number // nodes % GPUS
        at, boot = until - MONTH_S + number * MONTH_S / count, f"boot-{number % nodes}"
        stamp = rfc3339(at)
        yield Event(
            id=event_id(boot, f"GPU-{name}-{gpu}", code, "", (number,)), at=stamp, node=name, boot_id=boot,
            gpu=f"GPU-{name}-{gpu}", code=code, severity=known.severity, recovery=known.recovery, scope=known.scope,
            source=Source.KERNEL, first_at=stamp, last_at=stamp,
            text=f"NVRM: Xid (PCI:0000:0{gpu}:00): {code.removeprefix('xid:')}, pid=1, name=python",
        )  # fmt: skip


def condition(event: Event, at: float) -> ConditionLine:
    """What a serious event has led to, and is over."""
    return ConditionLine(
        at=at, subject=Subject(gpu=event.gpu), id=f"c-{event.id}", code=event.code, state="cleared",
        severity=event.severity, since=at, last_at=at, clears_on=ClearsOn.RESET, events=(event.id,),
    )  # fmt: skip


async def fill(store: Store, count: int, nodes: int, until: float) -> None:
    """Commit them, many in a transaction."""
    waiting: list[Event] = []
    for number, event in enumerate(events(count, nodes, until), 1):
        waiting.append(event)
        if len(waiting) == BATCH or number == count:
            at = until - MONTH_S + number * MONTH_S / count
            lines: list[Any] = [EventLine(at=at, subject=Subject(gpu=each.gpu), event=each) for each in waiting]
            lines += [condition(each, at) for each in waiting if each.code == SELDOM]
            await store.commit(Write(at=at, lines=lines, events=waiting))
            waiting = []


Question = Callable[[Any], Awaitable[Any]]


def questions(nodes: int, count: int, until: float) -> dict[str, Question]:
    """What is asked, by what it is called."""
    name = f"gpu-{min(3, nodes - 1):05d}"
    wanted = {
        "node=": EventFilter(node=name),
        "gpu=": EventFilter(gpu=f"GPU-{name}-0"),
        f"code={SELDOM}": EventFilter(code=SELDOM),
        f"code={OFTEN}": EventFilter(code=OFTEN),
        "severity=critical": EventFilter(severity=Severity.CRITICAL),
        "node= and code= that it never had": EventFilter(node=name, code="xid:79"),
        "since= an hour ago": EventFilter(since=until - 3600),
        "since= and until= of one old hour": EventFilter(since=until - MONTH_S / 2, until=until - MONTH_S / 2 + 3600),
    }
    found: dict[str, Question] = {text: partial(newest, each) for text, each in wanted.items()}
    found["cursor= in the middle"] = lambda each: pages.events_before(each, EventFilter(), count // 2, 100)
    found["explain of a GPU"] = lambda each: read.gpu_lines(each, f"GPU-{name}-0")
    return found


async def newest(wanted: EventFilter, connection: Any) -> Any:
    """A first page."""
    return await pages.events_before(connection, wanted, None, 100)


async def measure(options: argparse.Namespace, folder: Path) -> None:
    """All of it, printed as it comes."""
    store = await Store.open(Config(state_dir=str(folder), **options.where).place)
    try:
        until, began = time.time(), time.perf_counter()
        await fill(store, options.events, options.nodes, until)
        print(f"{options.events} events stored in {time.perf_counter() - began:.0f} s", flush=True)
        for text, ask in questions(options.nodes, options.events, until).items():
            print(f"{await asked(store, ask)}   {text}", flush=True)
        began, cpu = time.perf_counter(), time.process_time()
        async with store.reading() as connection:
            lines = [change async for change in recall.changes_that_count(connection)]
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        print(f"a restart reads {len(lines)} lines in {took:.2f} s, {cpu:.2f} s of processor", flush=True)
    finally:
        await store.close()


async def asked(store: Store, ask: Question) -> str:
    """p50 and p99 of one question."""
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        async with store.reading() as connection:
            await ask(connection)
        took.append((time.perf_counter() - began) * 1e3)
    return f"p50 {statistics.median(took):8.1f} ms   p99 {max(took):8.1f} ms"


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--database", help="URL of a PostgreSQL database; left out: SQLite")
    options = parser.parse_args()
    options.where = {"database": options.database} if options.database else {}
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
