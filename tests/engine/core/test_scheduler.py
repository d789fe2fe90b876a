from hypothesis import given
from hypothesis import strategies as st

from engine.core.blocks import BlockPool
from engine.core.scheduler import Scheduler
from engine.core.sequence import Finish, Output, Sampling, Sequence, Step


def scheduler(*, blocks: int = 64, running: int = 4, budget: int = 16) -> Scheduler:
    return Scheduler(BlockPool(blocks, 4), max_running=running, step_tokens=budget)


def sequence(name: str, length: int, most: int = 4, stop: int | None = None) -> Sequence:
    stops = frozenset() if stop is None else frozenset({stop})
    prompt = [ord(name[0]) * 100 + place for place in range(length)]
    return Sequence(name, prompt, Sampling(max_tokens=most, stop_ids=stops), 0.0)


def next_token(one: Sequence) -> int:
    """A model so simple that its answer depends on all tokens and on nothing else."""
    return sum(place * token for place, token in enumerate(one.tokens, 1)) % 997


def advance(one: Scheduler) -> tuple[Step | None, list[Output]]:
    step = one.schedule()
    if step is None:
        return None, []
    return step, one.settle(step, [next_token(span.sequence) for span in step.spans if span.samples])


def run(one: Scheduler) -> list[Output]:
    outputs: list[Output] = []
    while True:
        step, more = advance(one)
        if step is None:
            return outputs
        outputs += more


def shape(step: Step | None) -> list[tuple[str, int, int]]:
    assert step is not None
    return [(span.sequence.id, span.start, span.count) for span in step.spans]


def test_nothing_to_do_is_no_step() -> None:
    assert scheduler().schedule() is None


def test_a_short_prompt_is_computed_at_once_and_samples() -> None:
    one = scheduler()
    one.add(sequence("a", 5))
    step, outputs = advance(one)
    assert shape(step) == [("a", 0, 5)]
    assert [output.id for output in outputs] == ["a"]


def test_a_long_prompt_goes_in_chunks_and_samples_once() -> None:
    one = scheduler(budget=16)
    one.add(sequence("a", 40))
    steps = [advance(one) for _ in range(3)]
    assert [shape(step)[0][1:] for step, _ in steps] == [(0, 16), (16, 16), (32, 8)]
    assert [len(outputs) for _, outputs in steps] == [0, 0, 1]


def test_decoding_goes_on_beside_a_long_prompt() -> None:
    one = scheduler(budget=16)
    one.add(sequence("a", 3, most=10))
    advance(one)
    one.add(sequence("b", 40))
    step, _ = advance(one)
    assert shape(step) == [("a", 3, 1), ("b", 0, 15)]


def test_no_more_run_than_the_limit_and_the_others_keep_their_order() -> None:
    one = scheduler(running=2)
    for name in "abcd":
        one.add(sequence(name, 2, most=1))
    first, _ = advance(one)
    second, _ = advance(one)
    assert [[span[0] for span in shape(step)] for step in (first, second)] == [["a", "b"], ["c", "d"]]


def test_a_stop_token_ends_the_answer_and_is_part_of_it() -> None:
    one = scheduler()
    probe = sequence("a", 3)
    one.add(sequence("a", 3, most=50, stop=next_token(probe)))
    outputs = run(one)
    assert [(output.token, output.finish) for output in outputs] == [(next_token(probe), Finish.STOP)]


def test_the_last_token_that_was_asked_for_ends_with_length() -> None:
    one = scheduler()
    one.add(sequence("a", 3, most=3))
    assert [output.finish for output in run(one)] == [None, None, Finish.LENGTH]


def test_cancelling_frees_all_blocks_and_is_silent() -> None:
    one = scheduler()
    one.add(sequence("a", 9))
    advance(one)
    gone = one.cancel("a")
    assert gone is not None
    assert gone.id == "a"
    assert one.pool.free == one.pool.count
    assert one.cancel("a") is None
    assert one.schedule() is None


def test_when_the_cache_is_full_the_newest_gives_way_and_comes_back() -> None:
    one = scheduler(blocks=6, running=4, budget=32)
    old, new = sequence("a", 8, most=12), sequence("b", 8, most=12)
    one.add(old)
    one.add(new)
    outputs = run(one)
    assert one.preemptions > 0
    assert old.preemptions == 0
    assert new.preemptions > 0
    assert {output.id for output in outputs if output.finish} == {"a", "b"}
    assert one.pool.free == one.pool.count


def test_a_prompt_that_does_not_fit_now_waits_and_holds_nothing() -> None:
    one = scheduler(blocks=4)
    one.add(sequence("a", 12, most=2))
    one.add(sequence("b", 12, most=2))
    step, _ = advance(one)
    assert [span[0] for span in shape(step)] == ["a"]
    assert one.waiting[0].blocks == []


def test_a_known_prefix_is_not_computed_again() -> None:
    one = scheduler(budget=64)
    one.add(Sequence("a", list(range(20)), Sampling(max_tokens=1), 0.0))
    run(one)
    one.add(Sequence("b", list(range(20)), Sampling(max_tokens=1), 0.0))
    step, _ = advance(one)
    assert shape(step) == [("b", 16, 4)]
    assert (one.prefix_queries, one.prefix_hits) == (40, 16)


@given(
    wishes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 8)), min_size=1, max_size=8),
    blocks=st.integers(10, 30),
    running=st.integers(1, 5),
    budget=st.integers(5, 40),
)
def test_everyone_gets_what_it_would_get_alone(
    wishes: list[tuple[int, int]], blocks: int, running: int, budget: int
) -> None:
    def answers(sequences: list[Sequence], one: Scheduler) -> dict[str, list[int | None]]:
        for each in sequences:
            one.add(each)
        found: dict[str, list[int | None]] = {each.id: [] for each in sequences}
        for output in run(one):
            found[output.id].append(output.token)
        return found

    def made() -> list[Sequence]:
        return [sequence(f"{chr(97 + number)}", *wish) for number, wish in enumerate(wishes)]

    together = answers(made(), scheduler(blocks=blocks, running=running, budget=budget))
    alone: dict[str, list[int | None]] = {}
    for each in made():
        alone |= answers([each], scheduler(running=1, budget=1_000))
    assert together == alone


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_a_sequence_that_decodes_gets_a_token_in_every_step(lengths: list[int]) -> None:
    one = scheduler(blocks=200, running=5, budget=8)
    one.add(sequence("a", 2, most=100))
    advance(one)
    for number, length in enumerate(lengths):
        one.add(sequence(f"{chr(98 + number)}", length, most=5))
    for _ in range(30):
        _, outputs = advance(one)
        assert "a" in {output.id for output in outputs}
