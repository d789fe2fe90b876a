from itertools import product

import pytest

from vocab.states import (
    NEEDED_LEVEL,
    PHASE_MOVES,
    REPLICA_MOVES,
    ActionKind,
    Health,
    Level,
    Phase,
    ReplicaState,
    shown,
)


def test_every_state_has_its_row() -> None:
    assert set(PHASE_MOVES) == set(Phase)
    assert set(REPLICA_MOVES) == set(ReplicaState)
    assert set(NEEDED_LEVEL) == set(ActionKind)


def test_no_state_is_a_dead_end_and_none_moves_to_itself() -> None:
    for table in (PHASE_MOVES, REPLICA_MOVES):
        for state, moves in table.items():
            assert moves, state
            assert state not in moves


@pytest.mark.parametrize(("level", "needed"), list(product(Level, Level)))
def test_a_level_includes_those_before_it(level: Level, needed: Level) -> None:
    order = list(Level)
    assert level.allows(needed) == (order.index(level) >= order.index(needed))


def test_the_word_shown_takes_the_first_match() -> None:
    calm = {"health": Health.HEALTHY, "fresh": True, "held": False, "phase": Phase.IN_SERVICE}
    assert shown(**calm) == "healthy"
    assert shown(**{**calm, "held": True, "health": Health.FAILED}) == "cordoned"
    assert shown(**{**calm, "held": True, "fresh": False}) == "unknown"
    assert shown(**{**calm, "health": Health.LOST, "fresh": False}) == "lost"
    assert shown(**{**calm, "health": Health.LOST, "phase": Phase.DRAINING}) == "draining"
