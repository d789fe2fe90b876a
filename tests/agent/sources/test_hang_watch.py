"""Which driver calls hang, from snapshots of the call table."""

from agent.calls import Call
from agent.sources.frames import FIRST_GPU_SLOT, NODE_SLOT
from agent.sources.hang_watch import HangWatch

S = 1_000_000_000
GPU = FIRST_GPU_SLOT


def call(began_s: float, gpu: str | None = "GPU-1", allowed_s: float = 0.0) -> Call:
    return Call(gpu, "nvmlDeviceGetPowerUsage", int(began_s * S), allowed_s)


def test_a_slow_call_is_told_once_and_again_when_it_returns() -> None:
    watch = HangWatch(5.0)
    slow = {GPU: call(10)}
    assert watch.look(slow, 14 * S) == []
    assert [change.state for change in watch.look(slow, 15 * S)] == ["started"]
    assert watch.look(slow, 99 * S) == []
    assert [change.state for change in watch.look({}, 100 * S)] == ["returned"]
    assert watch.look({}, 101 * S) == []


def test_the_next_call_that_hangs_is_another_one() -> None:
    watch = HangWatch(5.0)
    watch.look({GPU: call(0)}, 10 * S)
    assert [change.state for change in watch.look({GPU: call(20)}, 30 * S)] == ["returned", "started"]


def test_waiting_by_intent_is_no_hang() -> None:
    watch = HangWatch(5.0)
    assert watch.look({1: call(0, None, allowed_s=1.0)}, int(5.5 * S)) == []
    assert len(watch.look({1: call(0, None, allowed_s=1.0)}, 6 * S)) == 1


def test_one_hung_gpu_of_two_is_not_stuck_and_two_are() -> None:
    watch = HangWatch(5.0)
    watch.look({GPU: call(0)}, 10 * S)
    assert not watch.stuck(2)
    watch.look({GPU: call(0), GPU + 1: call(1, "GPU-2")}, 10 * S)
    assert watch.stuck(2)


def test_a_start_that_hangs_is_stuck() -> None:
    watch = HangWatch(5.0)
    assert not watch.stuck(0)
    watch.look({NODE_SLOT: call(0, None)}, 10 * S)
    assert watch.stuck(0)


def test_the_call_that_began_first_is_the_suspect() -> None:
    watch = HangWatch(5.0)
    assert watch.suspect() is None
    watch.look({GPU: call(3), GPU + 1: call(1, "GPU-2"), GPU + 2: call(2, "GPU-3")}, 10 * S)
    suspect = watch.suspect()
    assert suspect is not None
    assert suspect.gpu == "GPU-2"
