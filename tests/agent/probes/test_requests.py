import pytest

from agent.probes.requests import CODE
from tests.agent.probes.replicas import cleared, codes, play


def counts(ok, failed=0, timed_out=0):
    return {
        "step": ok + failed,
        "running": 0,
        "requests_ok": ok,
        "requests_failed": failed,
        "requests_timed_out": timed_out,
    }


def test_a_fifth_of_the_answers_failing_is_unhealthy():
    assert codes(play(counts(0), counts(80, 10, 10))) == [CODE]


def test_fewer_than_twenty_answers_say_nothing():
    assert play(counts(0), counts(0, 19)) == []
    assert codes(play(counts(0), counts(0, 19), counts(0, 20))) == [CODE]


def test_what_came_before_the_first_look_is_not_judged():
    assert play(counts(100, 4000), counts(100, 4000), counts(150, 4000)) == []


def test_clients_that_break_off_are_no_errors():
    assert play(counts(0), counts(3918, 40)) == []


def test_good_answers_end_it():
    assert cleared(play(counts(0), counts(10, 20), counts(60, 20))) == [CODE]


def test_a_count_that_falls_is_a_new_start():
    assert play(counts(5000, 100), counts(30, 1), counts(60, 1)) == []


@pytest.mark.parametrize("missing", ["requests_failed", "requests_timed_out"])
def test_a_count_that_is_not_known_is_not_zero(missing):
    assert play(counts(100, 50, 50), counts(200, 50, 50) | {missing: None}, counts(210, 50, 50)) == []
