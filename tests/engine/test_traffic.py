import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.scheduler import Scheduler
from engine.core.sequence import Sequence
from tests.engine.traffic import Traffic

requests = st.tuples(
    st.lists(st.integers(0, 1), min_size=1, max_size=30),  # two tokens: prefixes and drafts meet all the time
    st.integers(1, 10),
    st.sampled_from("ab"),
    st.integers(0, 1),
)
moves = st.lists(st.one_of(requests, st.just("turn"), st.just("turn"), st.integers(0, 9)), max_size=60)


@given(
    moves=moves, blocks=st.integers(10, 24), running=st.integers(1, 5), budget=st.integers(5, 24),
    drafts=st.sampled_from((0, 3)), ahead=st.sampled_from((0, 1)),
)  # fmt: skip
def test_answers_are_right_and_no_block_is_lost_whatever_comes(
    moves: list, blocks: int, running: int, budget: int, drafts: int, ahead: int
) -> None:
    traffic = Traffic(blocks=blocks, running=running, budget=budget, drafts=drafts, ahead=ahead)
    for move in moves:
        if move == "turn":
            traffic.turn()
        elif isinstance(move, int):
            traffic.cancel(str(move))
        else:
            traffic.ask(*move)
        traffic.check()
    traffic.finish()


@pytest.mark.parametrize(("drafts", "ahead"), [(0, 0), (3, 0), (0, 1), (3, 1)])
def test_ten_thousand_requests_leave_the_pool_whole(drafts: int, ahead: int) -> None:
    dice = random.Random(7)
    traffic = Traffic(blocks=26, running=8, budget=40, drafts=drafts, ahead=ahead)
    for number in range(2_500):  # four times
        traffic.ask(dice.choices((0, 1), k=dice.randint(1, 24)), dice.randint(1, 8), dice.choice("abc"), number % 2)
        if dice.random() < 0.1:
            traffic.cancel(str(dice.randint(0, number)))
        while len(traffic.scheduler.waiting) > 8:
            traffic.turn()
    traffic.finish()
    assert traffic.scheduler.preemptions > 0
    assert traffic.scheduler.prefix_hits > 0
    assert bool(traffic.scheduler.speculation.accepted) == bool(drafts)
    assert bool(traffic.steps_ahead) == bool(ahead)


class Hasty(Scheduler):
    """Frees at once what has ended, as if no step could still be under way."""

    def _end(self, sequence: Sequence) -> None:
        sequence.ended = True
        self.pool.release(sequence)


def after_an_early_end(kind: type[Scheduler]) -> Traffic:
    """Two answers end with a stop token while the step behind it is under way; a third wants their blocks."""
    traffic = Traffic(blocks=6, running=3, budget=64, ahead=1, kind=kind)
    traffic.ask([0, 1, 0, 0, 1, 0, 1], 9)
    for _ in range(3):
        traffic.turn()
    traffic.cancel("0")
    traffic.ask([1, 1, 1, 1, 1, 1, 1, 1, 1], 9)
    return traffic


def test_blocks_of_what_has_ended_are_kept_until_no_step_knows_them() -> None:
    after_an_early_end(Scheduler).finish()


def test_freeing_them_at_once_is_noticed() -> None:
    with pytest.raises(AssertionError, match="a table changed under a step under way"):
        after_an_early_end(Hasty).finish()


@settings(max_examples=30)
@given(prompts=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=12), min_size=1, max_size=4))
def test_a_step_that_was_not_computed_is_computed_later(prompts: list[list[int]]) -> None:
    traffic = Traffic(blocks=40, running=4, budget=16)
    for prompt in prompts:
        traffic.ask(prompt, 6)
    for _ in range(6):
        step = traffic.scheduler.schedule()
        if step is not None:
            traffic.scheduler.withdraw(step)
        traffic.turn()
    traffic.finish()
