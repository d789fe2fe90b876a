from collections import Counter

from engine.core.threads import TRY_EVERY, Threads


def run(threads: Threads, steps: int, seconds: dict[int, float], tokens: int = 16) -> Counter[int]:
    chosen: Counter[int] = Counter()
    for _ in range(steps):
        count = threads.choose(tokens)
        threads.took(tokens, count, seconds[count])
        chosen[count] += 1
    return chosen


QUIET, BUSY = {4: 0.1, 1: 0.2}, {4: 1.6, 1: 0.3}


def test_what_is_quicker_is_taken_and_the_other_seldom_tried() -> None:
    steps = 1000
    assert run(Threads(4), steps, QUIET)[1] <= 2 + steps / (2 * TRY_EVERY)
    busy = run(Threads(4), steps, BUSY)
    assert busy[4] * BUSY[4] < 0.3 * busy[1] * BUSY[1]


def test_other_work_that_comes_and_goes_is_noticed() -> None:
    threads = Threads(4)
    run(threads, 100, QUIET)
    assert run(threads, 50, BUSY)[1] > 40
    run(threads, 6 * TRY_EVERY, QUIET)
    assert run(threads, 50, QUIET)[4] >= 49


def test_one_slow_step_alone_changes_nothing() -> None:
    threads = Threads(4)
    run(threads, 10, QUIET)
    run(threads, 1, {4: 5.0, 1: 5.0})
    assert run(threads, 15, QUIET)[4] == 15


def test_each_size_of_step_has_a_choice_of_its_own() -> None:
    threads = Threads(4)
    run(threads, 100, BUSY, tokens=1)
    run(threads, 100, QUIET, tokens=200)
    assert (threads.choose(1), threads.choose(200)) == (1, 4)
