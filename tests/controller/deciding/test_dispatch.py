"""Desired state by long poll: a generation rises when the content changes, and only then."""

import asyncio
from pathlib import Path

import pytest

from controller.deciding.dispatch import Dispatch
from tests.controller.house import NODE, batch, house, uuid
from vocab.errors import Refused
from vocab.messages import Desired, HoldSpec

HOLD = HoldSpec(id="h1", gpu="GPU-1", owner="operator", reason="noise")


def desired(*holds: HoldSpec) -> Desired:
    return Desired(node="n1", epoch=0, generation=0, holds=holds)


def tell(dispatch: Dispatch, wanted: Desired | None, epoch: int = 1) -> list[Desired]:
    fresh = dispatch.changed(["n1"], lambda _: wanted, epoch)
    dispatch.publish(fresh)
    return fresh


def test_equal_content_is_unchanged() -> None:
    dispatch = Dispatch()
    assert [each.generation for each in tell(dispatch, desired(HOLD))] == [1]
    assert tell(dispatch, desired(HOLD)) == []
    assert [each.generation for each in tell(dispatch, desired())] == [2]


def test_node_whose_replicas_are_not_known_keeps_what_it_was_told() -> None:
    dispatch = Dispatch()
    tell(dispatch, desired(HOLD))
    assert tell(dispatch, None) == []
    assert dispatch.desired("n1") == Desired(node="n1", epoch=1, generation=1, holds=(HOLD,))


def test_new_epoch_is_a_change() -> None:
    dispatch = Dispatch()
    tell(dispatch, desired())
    assert [(each.epoch, each.generation) for each in tell(dispatch, desired(), epoch=9)] == [(9, 2)]


def test_generation_rises_above_one_of_a_lost_database() -> None:
    dispatch = Dispatch()
    dispatch.raise_to("n1", 41)
    assert [each.generation for each in tell(dispatch, desired())] == [42]
    assert tell(dispatch, desired()) == []


async def test_poll_is_answered_when_something_changes() -> None:
    dispatch = Dispatch()
    tell(dispatch, desired())
    waiting = asyncio.create_task(dispatch.poll("n1", 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    tell(dispatch, desired(HOLD))
    answer = await asyncio.wait_for(waiting, 1)
    assert answer is not None
    assert answer.generation == 2


async def test_of_those_who_have_asked_and_gone_nothing_stays_whatever_node_they_named() -> None:
    dispatch = Dispatch()
    tell(dispatch, desired())
    gone = [asyncio.create_task(dispatch.poll(name, 1)) for name in ("n1", "n1", "made-up")]
    await asyncio.sleep(0)
    assert dispatch.waiting == 2
    for each in gone[1:]:
        each.cancel()
    await asyncio.wait(gone[1:])
    assert dispatch.waiting == 1
    assert await dispatch.poll("another", 0, wait_s=0) is None
    tell(dispatch, desired(HOLD))
    assert (await gone[0]).generation == 2  # type: ignore[union-attr]
    assert dispatch.waiting == 0


async def test_node_that_is_ahead_of_a_restored_database_is_told_nothing_old() -> None:
    dispatch = Dispatch()
    tell(dispatch, desired())
    waiting = asyncio.create_task(dispatch.poll("n1", 7))
    await asyncio.sleep(0)
    assert not waiting.done()
    dispatch.raise_to("n1", 7)
    tell(dispatch, desired(), epoch=2)
    answer = await asyncio.wait_for(waiting, 1)
    assert answer is not None
    assert (answer.epoch, answer.generation) == (2, 8)


async def test_long_poll_over_http_sees_a_hold_at_once(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        first = await home.get("agent/desired", node=NODE)
        waiting = asyncio.create_task(home.get("agent/desired", node=NODE, generation=first["generation"]))
        await home.post("holds", {"subject": {"gpu": uuid(1)}, "reason": "noise"})
        answer = await asyncio.wait_for(waiting, 60)
        assert answer["generation"] == first["generation"] + 1
        assert [hold["gpu"] for hold in answer["holds"]] == [uuid(1)]


async def test_poll_without_news_gives_the_same_generation(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        first = await home.get("agent/desired", node=NODE)
        assert await home.get("agent/desired", node=NODE, generation=first["generation"], wait_s=0) == first


async def test_unknown_node_hears_that_it_must_report(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        with pytest.raises(Refused, match="must report its facts"):
            await home.get("agent/desired", node="stranger", wait_s=0)


async def test_stop_of_the_controller_answers_open_polls(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        generation = (await home.get("agent/desired", node=NODE))["generation"]
        waiting = asyncio.create_task(home.get("agent/desired", node=NODE, generation=generation))
        async with asyncio.timeout(60):
            while not home.inside.dispatch.waiting:
                await asyncio.sleep(0.01)
        home.inside.dispatch.wake_all()
        assert (await asyncio.wait_for(waiting, 60))["generation"] == generation
