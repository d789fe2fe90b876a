"""What is asked of a history finds the same by whichever index it is looked for."""

from itertools import product
from pathlib import Path

import pytest

from controller.config import Config
from controller.store import pages
from controller.store.pages import EventFilter
from controller.store.records import Write
from controller.store.store import Store
from tests.controller.house import event
from vocab.events import Event, Severity, epoch_s

LATE = 1_796_000_000.0
NODES, CODES, GRAVE = ("n1", "n2"), ("xid:13", "xid:95"), (Severity.INFO, Severity.CRITICAL)


def told() -> list[Event]:
    """In another order than they happened in: a spool brings old ones late."""
    places = ((number * 7) % 40 for number in range(40))
    return [
        event(place, gpu=place % 3, node=NODES[place % 2], code=CODES[place // 2 % 2], severity=GRAVE[place // 4 % 2])
        for place in places
    ]


def fits(each: Event, wanted: EventFilter) -> bool:
    at = epoch_s(each.at or "")
    return (
        wanted.node in {None, each.node}
        and wanted.code in {None, each.code}
        and wanted.gpu in {None, each.gpu}
        and (wanted.severity is None or each.severity.rank >= wanted.severity.rank)
        and (wanted.since is None or at >= wanted.since)
        and (wanted.until is None or at < wanted.until)
    )


@pytest.mark.parametrize("narrow", [0, 10, 100])
async def test_events_that_match_come_page_by_page_in_the_order_in_which_they_were_stored(
    tmp_path: Path, narrow: int
) -> None:
    store, every = await Store.open(Config(state_dir=str(tmp_path)).place), told()
    try:
        await store.commit(Write(at=LATE, events=every))
        for node, code, gpu, severity, since, until in product(
            (None, "n1"), (None, "xid:95"), (None, every[0].gpu), (None, Severity.ERROR), (None, 10.0), (None, 30.0)
        ):
            wanted = EventFilter(
                node=node,
                code=code,
                gpu=gpu,
                severity=severity,
                since=None if since is None else LATE + since,
                until=None if until is None else LATE + until,
            )
            found, place = list[Event](), None
            for _ in range(len(every)):
                async with store.reading() as connection:
                    page, place = await pages.events_before(connection, wanted, place, 15, narrow=narrow)
                found = page + found
                if place is None:
                    break
            assert found == [each for each in every if fits(each, wanted)], wanted
    finally:
        await store.close()
