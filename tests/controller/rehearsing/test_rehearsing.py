"""Two policies are played in a process of their own: it tells how far it is, and does not outlive who listens."""

import os
from contextlib import aclosing
from pathlib import Path

from controller.config import Config
from controller.core.fleet.settings import Rule, Settings
from controller.core.fleet.stimuli import Shaped
from controller.rehearsing.rehearsing import Rehearsing
from controller.rehearsing.told import Brief, Decided, Failed, Progress
from controller.store.past import Span
from controller.store.records import Write
from controller.store.store import Store
from tests.controller.house import event, facts

T0 = 1_796_000_000.0


def brief(folder: Path) -> Brief:
    quiet = Settings(rules={"xid:79": Rule(shadow=True)})
    return Brief(
        config=Config(state_dir=str(folder)), before=Settings(), after=quiet, shape=Shaped(), span=Span(T0, T0 + 1e6)
    )


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_what_is_stored_is_played_and_its_end_is_told(tmp_path: Path) -> None:
    store = await Store.open(Config(state_dir=str(tmp_path)).place)
    await store.commit(Write(at=T0, facts=[facts()], events=[event(1), event(2, gpu=1)]))
    told = [each async for each in Rehearsing().play(brief(tmp_path))]
    await store.close()
    assert told[0] == Progress(events=0, stored=2)
    last = told[-1]
    assert isinstance(last, Decided)
    assert (last.events, last.first) == (2, T0 + 1)
    assert {(each.rule, each.of): (each.before, each.after) for each in last.decided}["xid:79", "hold"] == (2, 0)


async def test_who_stops_listening_ends_it(tmp_path: Path) -> None:
    store = await Store.open(Config(state_dir=str(tmp_path)).place)
    rehearsing = Rehearsing()
    async with aclosing(rehearsing.play(brief(tmp_path))) as telling:
        async for _ in telling:
            pid = rehearsing.pid
            assert rehearsing.busy
            assert pid is not None
            break
    await store.close()
    assert not lives(pid)
    assert not rehearsing.busy


async def test_a_store_that_does_not_answer_and_a_controller_that_stops_are_told(tmp_path: Path) -> None:
    rehearsing = Rehearsing()
    (lost,) = [each async for each in rehearsing.play(brief(tmp_path / "nowhere"))]
    assert isinstance(lost, Failed)
    assert "the store cannot read" in lost.why
    store = await Store.open(Config(state_dir=str(tmp_path)).place)
    told = []
    async for each in rehearsing.play(brief(tmp_path)):
        rehearsing.close()
        told.append(each)
    await store.close()
    assert isinstance(told[-1], Decided | Failed)  # it may have been done by then
