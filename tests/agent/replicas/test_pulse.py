import pytest

from agent.replicas.pulse import SILENT_S, STALL_S, STALL_STEPS, Pulse, follow, oldest_wait_s, stepping
from vocab.beat import Beat


def beat(now: float, step: int = 1, **more: int) -> Beat:
    return Beat(pid=7, ready=True, step=step, written_ns=int(now * 1e9), **more)


def watched(*beats: tuple[float, Beat]) -> Pulse:
    pulse = Pulse()
    for now, each in beats:
        pulse = follow(pulse, each, now)
    return pulse


def test_a_saturated_engine_that_steps_is_alive() -> None:
    pulse = watched(*((float(now), beat(now, step=now, running=64, waiting=300)) for now in range(100)))
    assert stepping(pulse, 99.0)


def test_work_without_a_step_is_a_stall() -> None:
    pulse = watched((0.0, beat(0.0, running=8)), (STALL_S + 1.0, beat(STALL_S + 1.0, running=8)))
    assert not stepping(pulse, STALL_S + 1.0)


def test_an_engine_whose_steps_are_long_is_given_longer() -> None:
    slow = int(2 * STALL_S * 1e9)
    pulse = watched(*((now, beat(now, running=8, p999_step_ns=slow)) for now in (0.0, STALL_STEPS * 2 * STALL_S)))
    assert stepping(pulse, STALL_STEPS * 2 * STALL_S)


def test_an_idle_engine_stands_still_and_is_well() -> None:
    pulse = watched((0.0, beat(0.0)), (3600.0, beat(3600.0)))
    assert stepping(pulse, 3600.0)


def test_work_after_an_idle_hour_has_its_time() -> None:
    pulse = watched((3600.0, beat(3600.0)), (3600.5, beat(3600.5, running=1)))
    assert stepping(pulse, 3600.5 + STALL_S - 1.0)


def test_a_beat_that_stops_is_a_process_that_stands_still() -> None:
    assert not stepping(watched((0.0, beat(0.0))), SILENT_S + 0.1)


def test_without_a_beat_nothing_is_claimed() -> None:
    assert stepping(Pulse(), 1e6)
    assert follow(Pulse(), None, 1.0) == Pulse()


def test_a_new_process_begins_anew() -> None:
    old = watched((0.0, beat(0.0, step=90_000, running=1)))
    fresh = follow(old, Beat(pid=8, step=12, running=1, written_ns=9_000_000_000), 9.0)
    assert stepping(fresh, 9.0)


@pytest.mark.parametrize(("waiting", "since_ns", "expected"), [(0, 5, None), (1, 0, None), (2, 1_000_000_000, 3.0)])
def test_the_oldest_wait(waiting: int, since_ns: int, expected: float | None) -> None:
    assert oldest_wait_s(beat(4.0, waiting=waiting, oldest_wait_since_ns=since_ns), 4.0) == expected


def test_a_step_counts_from_when_it_was_made_not_from_when_it_was_seen() -> None:
    stepped = beat(1.5, running=1, step=2, last_step_ns=600_000_000)
    pulse = watched((0.0, beat(0.0, running=1, step=1)), (1.5, stepped))
    assert stepping(pulse, 0.6 + STALL_S)
    assert not stepping(follow(pulse, beat(6.0, running=1, step=2, last_step_ns=600_000_000), 6.0), 0.7 + STALL_S)


def test_an_engine_that_tells_an_old_time_of_its_steps_still_steps() -> None:
    pulse = watched(*((now, beat(now, running=1, step=int(now), last_step_ns=1)) for now in (1.0, 8.0, 9.0)))
    assert stepping(pulse, 8.0 + STALL_S)
