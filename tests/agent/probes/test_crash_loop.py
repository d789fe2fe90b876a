from agent.probes.crash_loop import CODE
from tests.agent.probes.replicas import cleared, codes, only, play
from vocab.observations import Exit

GONE, STARTS, SERVES = (
    {"phase": "stopped", "exit": Exit(code=1, text="unknown flag")},
    {"phase": "starting"},
    {"step": 1, "running": 1},
)


def test_the_fourth_death_in_ten_minutes_is_one_too_many():
    assert CODE not in codes(play(*[STARTS, GONE] * 3, step=30.0))
    found = play(*[STARTS, GONE] * 5, step=30.0)
    assert codes(found).count(CODE) == 1
    assert "unknown flag" in only(found, CODE).text


def test_deaths_of_a_week_are_no_loop():
    assert CODE not in codes(play(*[STARTS, GONE] * 10, step=400.0))


def test_the_supervisors_own_word_counts_at_once():
    assert CODE in codes(play(SERVES, {"phase": "stopped", "exit": Exit(code=1, reason="crash_loop")}))


def test_ten_minutes_of_work_end_it():
    works = [{"step": step, "running": 1} for step in range(30)]
    assert CODE in cleared(play(*[STARTS, GONE] * 4, *works, step=60.0))
