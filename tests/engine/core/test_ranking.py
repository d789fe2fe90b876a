from hypothesis import given
from hypothesis import strategies as st

from engine.core.blocks import BlockPool
from engine.core.ranking import PRIORITY_TURNS
from engine.core.scheduler import Scheduler
from engine.core.sequence import Sampling, Sequence


def wish(name: str, client: str = "", priority: int = 0, most: int = 1) -> Sequence:
    return Sequence(name, [1, 2], Sampling(max_tokens=most), 0.0, client=client, priority=priority)


def one_at_a_time() -> Scheduler:
    return Scheduler(BlockPool(8, 4), max_running=1, step_tokens=16)


def advance(scheduler: Scheduler) -> str:
    """One step; who was computed."""
    step = scheduler.schedule()
    assert step is not None
    scheduler.settle(step, [7] * sum(span.samples for span in step.spans))
    return step.spans[0].sequence.id


def order(*wishes: Sequence) -> list[str]:
    scheduler = one_at_a_time()
    for one in wishes:
        scheduler.add(one)
    return [advance(scheduler) for _ in wishes]


def test_equals_go_by_arrival() -> None:
    assert order(wish("a"), wish("b"), wish("c")) == ["a", "b", "c"]


def test_a_lower_number_goes_first() -> None:
    assert order(wish("later", priority=1), wish("now"), wish("first", priority=-2)) == ["first", "now", "later"]


def test_clients_take_turns_whatever_one_of_them_has_sent() -> None:
    flood = [wish(f"a{n}", "ann") for n in range(4)]
    assert order(*flood, wish("b0", "bob"), wish("b1", "bob")) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_who_comes_late_does_not_get_the_turns_that_were_missed() -> None:
    scheduler = one_at_a_time()
    for n in range(3):
        scheduler.add(wish(f"a{n}", "ann"))
    first = [advance(scheduler) for _ in range(2)]
    for n in range(2):
        scheduler.add(wish(f"b{n}", "bob"))
    assert first + [advance(scheduler) for _ in range(3)] == ["a0", "a1", "a2", "b0", "b1"]


def test_a_low_priority_is_not_starved_by_a_flood_of_higher_ones() -> None:
    scheduler = one_at_a_time()
    scheduler.add(wish("low", priority=1))
    for n in range(3 * PRIORITY_TURNS):
        scheduler.add(wish(f"{n}", f"client {n % 2}"))
        scheduler.add(wish(f"{n}+", f"client {n % 2}"))
        if advance(scheduler) == "low":
            break
    else:
        raise AssertionError("the low priority waits for ever")


@given(flood=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30), low=st.integers(0, 3))
def test_a_request_waits_for_no_more_than_the_turns_promise(flood: list[tuple[int, int]], low: int) -> None:
    scheduler = one_at_a_time()
    mine = wish("mine", "me", priority=low)
    scheduler.add(mine)
    most = (mine.rank[0] + 1) * 3 * 3  # turns x clients x priorities
    for number in range(most):
        client, priority = flood[number % len(flood)]
        for copy in range(2):
            scheduler.add(wish(f"{number}.{copy}", f"client {client}", priority))
        if advance(scheduler) == "mine":
            return
    raise AssertionError("it waits longer than was promised")


def test_the_last_in_rank_gives_way_when_the_cache_is_full() -> None:
    scheduler = Scheduler(BlockPool(4, 4), max_running=4, step_tokens=64)
    low, high = wish("low", priority=5, most=9), wish("high", most=9)
    scheduler.add(low)
    step = scheduler.schedule()
    assert step is not None
    scheduler.settle(step, [7])
    scheduler.add(high)
    while (step := scheduler.schedule()) is not None:
        scheduler.settle(step, [7 for span in step.spans if span.samples])
    assert low.preemptions > 0
    assert high.preemptions == 0
    assert scheduler.pool.free == scheduler.pool.count
