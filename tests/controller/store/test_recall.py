"""A restart reads what counts: the core that comes of it is as the one that comes of everything."""

import random
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from controller.config import Config
from controller.core.core import Core
from controller.core.fleet.ledger import LOOSE_S, Ledger
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import AnyStimulus, Declared, Recalled
from controller.store import read, recall, shared
from controller.store.records import Write
from controller.store.store import Store
from tests.controller.house import Keys
from tests.sim.node import Node
from tests.sim.test_promises import CHAT, GPUS, HARMFUL, HARMLESS, LIMITS, NODES, PAIR, happen
from tests.sim.world import World
from vocab.lines import AnyLine, EventLine, StateLine

LOOSE = ("events", "first_taken_at", "taken_at", "unexamined", "_loose", "docket", "pauses")  # compared by themselves
WAYS = (
    *(("hit", HARMLESS), ("hit", HARMFUL), ("fenced", HARMFUL), ("clear", ("",)), ("ask", ("hold", "lift", "pause"))),
    *(("silent", ("begin", "end")), ("blind", ("",)), ("crash", ("",)), ("reboot", ("",))),
)


@pytest.fixture
async def store(tmp_path: Path, database: Keys) -> AsyncIterator[Store]:
    opened = await Store.open(Config(state_dir=str(tmp_path), **database).place)
    if opened.database.shared:
        async with opened.noting() as connection:
            opened.term = await shared.take(connection, "test", await shared.look(connection))
    yield opened
    await opened.close()


def played(seed: int) -> World:
    """Two hours of a small fleet, in which much happens at the beginning and at the end."""
    chance = random.Random(seed)
    world = World([Node(f"n{n + 1}", GPUS) for n in range(NODES)], (CHAT, PAIR), Settings(limits=LIMITS))
    world.run(12)
    for pause_s in (*[4.0] * 10, 2 * LOOSE_S, *[4.0] * 5):
        what, how = chance.choice(WAYS)
        happen(world, what, (chance.randint(1, NODES), chance.randrange(GPUS)), chance.choice(how))
        world.run(pause_s, every_s=max(2.0, pause_s / 40))
    return world


async def stored(store: Store, world: World) -> tuple[list[AnyLine], list[AnyLine]]:
    """All lines, and those that a restart reads."""
    for start in range(0, len(world.lines), 50):
        lines = world.lines[start : start + 50]
        events = {line.event.id: line.event for line in lines if isinstance(line, EventLine)}
        await store.commit(Write(at=world.now, lines=lines, events=list(events.values())))
    async with store.reading() as connection:
        every = [change.line async for change in read.all_changes(connection)]
        return every, [change.line async for change in recall.changes_that_count(connection)]


def restored(world: World, lines: Iterable[AnyLine]) -> tuple[Core, list[AnyLine]]:
    """A core that begins with these lines, is told of the fleet again, and decides."""
    core = Core(world.settings)
    for line in lines:
        core.fold(line)
    told: list[AnyStimulus] = [Recalled(facts=facts) for facts in world.stored_facts.values()]
    told += [Declared(deployment=deployment) for deployment in world.deployments]
    return core, core.recall(told, world.now) + core.tick(world.now)


def known(ledger: Ledger) -> dict[str, Any]:
    return (
        {name: value for name, value in vars(ledger).items() if name not in LOOSE}
        | vars(ledger.docket)
        | vars(ledger.pauses)
    )


@pytest.mark.parametrize("seed", range(3))
async def test_core_of_what_counts_equals_the_core_of_everything(store: Store, seed: int) -> None:
    world = played(seed)
    every, counting = await stored(store, world)
    assert every == world.lines
    assert counting == [line for line in every if line in counting], "in the order in which they were stored"
    (whole, said), (lean, as_well) = restored(world, every), restored(world, counting)
    assert as_well == said
    assert known(lean._fleet.ledger) == known(whole._fleet.ledger)
    assert lean.view() == whole.view()
    assert lean.final(world.now) == whole.final(world.now)
    assert lean.next_deadline() == whole.next_deadline()


async def test_old_events_that_led_to_nothing_are_not_read(store: Store) -> None:
    world = World([Node("n1")])
    world.run(4)
    world.nodes["n1"].hit(world.nodes["n1"].gpus[0], "xid:13", world.now)
    world.run(2 * LOOSE_S, every_s=600)
    world.nodes["n1"].hit(world.nodes["n1"].gpus[1], "xid:13", world.now)
    world.run(4)
    every, counting = await stored(store, world)
    seen, kept = ([line.event for line in lines if isinstance(line, EventLine)] for lines in (every, counting))
    assert [event.gpu for event in seen if event.code == "xid:13"] == ["GPU-n1-0", "GPU-n1-1"]
    assert [event.gpu for event in kept if event.code == "xid:13"] == ["GPU-n1-1"]


async def test_of_a_machine_only_the_last_word_is_read(store: Store) -> None:
    world = World([Node("n1", 1), Node("n2", 1)])
    for silent in (False, True, False, True):
        world.nodes["n2"].silent = silent
        world.run(200, every_s=4)
    every, counting = await stored(store, world)
    said, kept = ([line for line in lines if isinstance(line, StateLine)] for lines in (every, counting))
    assert [line.to for line in said if line.subject.node == "n2"] == ["live", "unknown", "live", "unknown"]
    assert len([line for line in said if line.subject.gpu == "GPU-n2-0"]) == 3
    last = {line.subject: line for line in said}
    assert kept == [line for line in said if last[line.subject] is line]
