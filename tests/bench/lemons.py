"""What the hourly judgement of lemons costs a large fleet.

    python -m tests.bench.lemons [--gpus 100000] [--a-card 3]

Cards of two boards and 28 days of daily rollups go into the store: faults and holds, so many rows a card, and ten cards
that have two every day. Then the judgement is made, as the controller makes it.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from pathlib import Path

from sqlalchemy import insert

from controller.store.dialects import Sqlite
from controller.store.lemons import judged
from controller.store.rollup import DAY
from controller.store.store import Store
from controller.store.tables import cards, rollups

NOW = 1_796_083_200.0
DAYS = 28
BOARDS = ("NVIDIA H100 80GB HBM3", "NVIDIA H200")
CODES = ("xid:79", "xid:48", "xid:95", "xid:64")
PAGE = 20_000


def card(number: int) -> dict[str, object]:
    """A card in its node."""
    return {"uuid": f"GPU-{number:08x}", "serial": None, "board": BOARDS[number % 2], "first": 0.0, "until": None,
            "node": f"gpu-{number // 8:05d}", "pci": f"0000:{number % 8:02x}:00", "since": 0.0}  # fmt: skip


def tally(number: int, day: int, measure: str, name: str) -> dict[str, object]:
    """A row of the daily rollups."""
    return {"span": DAY, "start": int(NOW) - (day + 1) * DAY, "gpu": f"GPU-{number:08x}", "deployment": "",
            "measure": measure, "name": name, "value": 1.0}  # fmt: skip


def tallies(gpus: int, a_card: int) -> list[dict[str, object]]:
    """All of them."""
    rows = [
        tally(number, (number * 7 + nth * 5) % DAYS, "hold" if nth % 3 == 2 else "fault", CODES[(number + nth) % 4])
        for number in range(gpus)
        for nth in range(a_card)
    ]
    every = max(1, gpus // 10)
    bad = [tally(number, day, "fault", CODES[day % 4]) for number in range(0, gpus, every) for day in range(DAYS)]
    bad += [tally(number, day, "repair", f"of {day}") for number in range(0, gpus, every) for day in range(DAYS)]
    keyed = {(row["gpu"], row["start"], row["measure"], row["name"]): row for row in (*rows, *bad)}
    return list(keyed.values())


async def measure(gpus: int, a_card: int) -> None:
    """Fill a store, judge, and say what it took."""
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(Sqlite(Path(folder) / "corral.db"))
        rows = tallies(gpus, a_card)
        async with store.writing() as connection:
            for start in range(0, gpus, PAGE):
                await connection.execute(insert(cards), [card(each) for each in range(start, min(start + PAGE, gpus))])
            for start in range(0, len(rows), PAGE):
                await connection.execute(insert(rollups), rows[start : start + PAGE])
        began, processor = time.monotonic(), time.process_time()
        async with store.reading() as connection:
            found = await judged(connection, NOW)
        took, used = time.monotonic() - began, time.process_time() - processor
        await store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{gpus} cards, {len(rows)} rollups: {used:.2f} s of processor, {took:.2f} s; {peak} MiB at most;")
    print(f"{sum(each.lemon for each in found)} lemons, {len(found)} with a signal")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=100_000)
    parser.add_argument("--a-card", type=int, default=3)
    given = parser.parse_args()
    asyncio.run(measure(given.gpus, given.a_card))


if __name__ == "__main__":
    main()
