"""Time for decisions follows the monotonic clock, however the wall clock is set."""

import pytest

from controller.deciding.steady import SteadyTime
from vocab.clock import VirtualClock


def test_time_passes_as_it_does() -> None:
    clock = VirtualClock(1000.0)
    steady = SteadyTime(clock)
    clock.advance(7.5)
    assert steady.now() == pytest.approx(1007.5)


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_jump_of_the_wall_clock_neither_stops_nor_hurries_time(jump: float) -> None:
    clock = VirtualClock(1000.0)
    steady = SteadyTime(clock)
    clock.step_wall(jump)
    clock.advance(10.0)
    assert 1009.4 <= steady.now() <= 1010.6


def test_time_comes_back_to_the_wall_clock() -> None:
    clock = VirtualClock(1000.0)
    steady = SteadyTime(clock)
    clock.step_wall(60.0)
    for _ in range(100):
        clock.advance(20.0)
        steady.now()
    assert steady.now() == pytest.approx(clock.now())
