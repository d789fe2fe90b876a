"""A fleet's past is told whole, in the order in which it happened, however many pages it has."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.config import Config
from controller.core.rehearsal import Told
from controller.store import past, shared
from controller.store.past import Span
from controller.store.records import Write
from controller.store.store import Store
from tests.controller.house import Keys, event
from vocab.events import Event, Source, epoch_s
from vocab.lines import ConditionLine, Subject
from vocab.messages import ClearedItem, EventItem
from vocab.states import ClearsOn

T0 = 1_796_000_000.0


@pytest.fixture
async def store(tmp_path: Path, database: Keys) -> AsyncIterator[Store]:
    opened = await Store.open(Config(state_dir=str(tmp_path), **database).place)
    if opened.database.shared:
        async with opened.noting() as connection:
            opened.term = await shared.take(connection, "test", await shared.look(connection))
    yield opened
    await opened.close()


def said(told: Told) -> Event:
    assert isinstance(told.item, EventItem)
    return told.item.event


def cleared(of: Event, at: float) -> ConditionLine:
    return ConditionLine(
        at=at, id=f"c-{of.id}", code=of.code, subject=Subject(gpu=of.gpu), state="cleared", severity=of.severity,
        clears_on=ClearsOn.SIGNAL, events=(of.id,), since=epoch_s(of.at), last_at=epoch_s(of.at),
    )  # fmt: skip


async def test_more_than_a_page_is_told_once_and_by_its_time(store: Store) -> None:
    made = [event(number, code=f"xid:{number}", rev=2) for number in range(past.PAGE + 70)]
    many = [replace(each, at=event(number // 3).at) for number, each in enumerate(made)]  # three at one time
    stored = [each for each in many if each.code != "xid:7"]
    for start in range(0, len(many), 100):
        await store.commit(Write(at=T0, events=list(reversed(stored[start : start + 100]))))
    span = Span(T0 + 10, T0 + 10_000)
    found = [said(each) for each in [each async for each in past.told(store, span)]]
    wanted = [each for each in stored if epoch_s(each.at) >= span.since]
    assert [each.at for each in found] == sorted(each.at for each in wanted)
    assert {each.id for each in found} == {each.id for each in wanted}
    assert {each.rev for each in found} == {1}
    assert await past.count(store, span) == len(wanted)
    assert await past.first_at(store, span) == T0 + 10


async def test_a_signal_that_returned_comes_after_what_it_ends_and_only_if_that_is_told(store: Store) -> None:
    old, first, second = event(1), event(100), event(200)
    ours = replace(event(150, code="node_lost"), source=Source.CORRAL)
    await store.commit(Write(at=T0 + 200, events=[old, first, second, ours]))
    ends = [cleared(old, T0 + 110), cleared(first, T0 + 120), cleared(second, T0 + 300)]
    await store.commit(Write(at=T0 + 300, lines=ends))
    told = [each async for each in past.told(store, Span(T0 + 50, T0 + 1000))]
    assert [(each.at - T0, isinstance(each.item, ClearedItem)) for each in told] == [
        (100.0, False),
        (120.0, True),
        (200.0, False),
        (300.0, True),
    ]
