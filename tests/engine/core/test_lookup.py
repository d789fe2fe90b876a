from engine.core.lookup import SLEEP, Lookup


def test_nothing_is_guessed_of_what_has_not_been_seen() -> None:
    assert Lookup().guess([1, 2, 3, 4, 5], 4) == ()
    assert Lookup().guess([1], 4) == ()


def test_what_followed_last_time_is_guessed() -> None:
    assert Lookup().guess([1, 2, 3, 4, 5, 6, 1, 2, 3], 2) == (4, 5)


def test_the_latest_time_counts() -> None:
    assert Lookup().guess([1, 2, 3, 4, 0, 1, 2, 3, 5, 0, 1, 2, 3], 1) == (5,)


def test_a_longer_run_is_better_evidence_than_a_shorter_one() -> None:
    assert Lookup().guess([1, 2, 3, 9, 0, 7, 2, 3, 8, 0, 1, 2, 3], 1) == (9,)


def test_what_repeats_is_guessed_to_go_on() -> None:
    assert Lookup().guess([1, 2, 1, 2, 1, 2], 5) == (1, 2, 1, 2, 1)
    assert Lookup().guess([7, 7, 7, 7], 3) == (7, 7, 7)


def test_it_learns_from_tokens_that_come() -> None:
    lookup = Lookup()
    tokens = [1, 2, 3, 4, 5]
    assert lookup.guess(tokens, 1) == ()
    tokens += [3, 4]
    assert lookup.guess(tokens, 1) == (5,)


def test_wrong_guesses_put_it_to_sleep_and_it_tries_again() -> None:
    lookup = Lookup()
    known = 100
    while lookup.awake(known):
        lookup.learn(0.0, known)
        known += 1
    assert known < 110
    assert not lookup.awake(known + SLEEP - 2)
    assert lookup.awake(known + SLEEP)


def test_guesses_that_are_mostly_right_never_stop() -> None:
    lookup = Lookup()
    for known in range(100):
        lookup.learn(float(known % 2), known)
    assert lookup.awake(100)
