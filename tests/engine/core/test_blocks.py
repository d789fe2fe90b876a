from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.core.blocks import BlockPool
from engine.core.scheduler import Scheduler
from engine.core.sequence import Sampling, Sequence, Step

SIZE = 4


def sequence(tokens: list[int], name: str = "a", max_tokens: int = 8) -> Sequence:
    return Sequence(name, tokens, Sampling(max_tokens=max_tokens), 0.0)


def computed(pool: BlockPool, one: Sequence) -> Sequence:
    """As if all tokens of the sequence had been computed."""
    assert pool.grow(one, len(one.tokens))
    one.computed = len(one.tokens)
    pool.publish(one)
    return one


def test_a_full_pool_gives_nothing_and_changes_nothing() -> None:
    pool = BlockPool(2, SIZE)
    first, second = sequence([1] * 8), sequence([2])
    assert pool.grow(first, 8)
    assert not pool.grow(second, 1)
    assert (pool.free, second.blocks) == (0, [])


def test_released_blocks_can_be_used_again() -> None:
    pool = BlockPool(2, SIZE)
    first = sequence([1] * 8)
    pool.grow(first, 8)
    pool.release(first)
    assert pool.free == 2
    assert pool.used_ratio == 0.0


def test_an_equal_prefix_is_found_and_shared() -> None:
    pool = BlockPool(8, SIZE)
    first = computed(pool, sequence([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    second = sequence([1, 2, 3, 4, 5, 6, 7, 8, 77])
    assert pool.adopt(second) == 8
    assert second.blocks == first.blocks[:2]


def test_a_prefix_is_found_after_its_sequence_has_gone() -> None:
    pool = BlockPool(8, SIZE)
    first = computed(pool, sequence([1, 2, 3, 4, 5]))
    blocks = first.blocks[:1]
    pool.release(first)
    second = sequence([1, 2, 3, 4, 9])
    assert pool.adopt(second) == SIZE
    assert second.blocks == blocks


def test_one_token_is_always_left_to_compute() -> None:
    pool = BlockPool(8, SIZE)
    pool.release(computed(pool, sequence([1, 2, 3, 4, 5, 6, 7, 8])))
    again = sequence([1, 2, 3, 4, 5, 6, 7, 8])
    assert pool.adopt(again) == 4
    assert again.pending == 4


def test_the_same_block_after_another_prefix_is_not_the_same() -> None:
    pool = BlockPool(8, SIZE)
    pool.release(computed(pool, sequence([1, 1, 1, 1, 7, 7, 7, 7, 0])))
    other = sequence([2, 2, 2, 2, 7, 7, 7, 7, 0])
    assert pool.adopt(other) == 0


def test_tails_of_prefixes_are_lost_before_their_heads() -> None:
    pool = BlockPool(3, SIZE)
    pool.release(computed(pool, sequence([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])))
    stranger = sequence([50])
    pool.grow(stranger, 1)
    again = sequence([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    assert pool.adopt(again) == 8


class Shadow:
    """Stands for the cache's memory: each place remembers the whole prefix that it was computed from."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], tuple[int, ...]] = {}

    def compute(self, step: Step) -> None:
        for span in step.spans:
            one = span.sequence
            for place in range(span.start, span.start + span.count):
                self._places[one.blocks[place // SIZE], place % SIZE] = tuple(one.tokens[: place + 1])
        for span in step.spans:  # only now: a place may not be overwritten by a neighbour in the same step
            one = span.sequence
            for place in range(span.start + span.count):
                held = self._places[one.blocks[place // SIZE], place % SIZE]
                assert held == tuple(one.tokens[: place + 1]), "a place holds another prefix's keys"


def check_books(pool: BlockPool, scheduler: Scheduler) -> None:
    tables = Counter(block for one in [*scheduler.running, *scheduler.waiting] for block in one.blocks)
    assert not [one for one in scheduler.waiting if one.blocks], "who waits holds nothing"
    assert pool.free + len(tables) == pool.count, "a block is lost or counted twice"
    shared = [block for block, count in tables.items() if count > 1]
    for block in shared:
        for one in scheduler.running:
            if block in one.blocks:
                assert (one.blocks.index(block) + 1) * SIZE <= len(one.tokens), "a block that is not full is shared"


requests = st.tuples(
    st.lists(st.integers(0, 1), min_size=1, max_size=30),  # two tokens: prefixes meet all the time
    st.integers(1, 10),
)
moves = st.lists(st.one_of(requests, st.just("step"), st.just("step"), st.integers(0, 9)), max_size=60)


@given(moves=moves, count=st.integers(10, 24), running=st.integers(1, 5), budget=st.integers(5, 24))
def test_no_block_is_lost_or_wrongly_shared_whatever_comes(moves: list, count: int, running: int, budget: int) -> None:
    pool = BlockPool(count, SIZE)
    scheduler = Scheduler(pool, max_running=running, step_tokens=budget)
    shadow = Shadow()
    names = 0

    def step() -> bool:
        planned = scheduler.schedule()
        if planned is None:
            return False
        assert planned.tokens <= budget
        shadow.compute(planned)
        sampled = [len(span.sequence.tokens) % 2 for span in planned.spans if span.samples]
        scheduler.settle(planned, sampled)
        return True

    for move in moves:
        if move == "step":
            step()
        elif isinstance(move, int):
            scheduler.cancel(str(move))
        else:
            tokens, most = move
            scheduler.add(sequence(tokens, str(names), most))
            names += 1
        check_books(pool, scheduler)
    for _ in range(5_000):
        if not step():
            break
        check_books(pool, scheduler)
    assert not scheduler.busy, "the scheduler does not come to an end"
    assert pool.free == pool.count
