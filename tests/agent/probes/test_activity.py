from agent.probes.activity import ActivityProbe
from agent.probes.probe import Clear
from tests.agent.made import sample, scene

HUNG = {"utilization_ratio": 1.0, "sm_active_ratio": 0.06, "power_w": 70.0, "power_limit_w": 700.0}
BUSY = HUNG | {"sm_active_ratio": 0.71, "power_w": 520.0}
IDLE = HUNG | {"utilization_ratio": 0.0, "sm_active_ratio": 0.0}
BROKEN_COUNTER = HUNG | {"sm_active_ratio": 0.0, "power_w": 600.0}


def play(*readings, step=30.0):
    probe = ActivityProbe()
    return [v for t, r in enumerate(readings) for v in probe.observe(sample(t * step, **r), scene(), t * step)]


def test_busy_by_one_counter_and_idle_by_the_rest_for_two_minutes_is_said_once():
    (found,) = play(*[HUNG] * 10)
    assert found.code == "activity_contradiction"
    assert found.at == 120.0


def test_work_idleness_and_a_broken_counter_are_not_it():
    for readings in (BUSY, IDLE, BROKEN_COUNTER):
        assert play(*[readings] * 10) == []


def test_one_honest_sample_starts_the_window_anew():
    assert play(HUNG, HUNG, HUNG, BUSY, HUNG, HUNG, HUNG, HUNG) == []


def test_a_missing_reading_changes_nothing():
    assert len(play(HUNG, {"utilization_ratio": 1.0}, HUNG, HUNG, HUNG)) == 1


def test_it_ends_with_three_honest_samples():
    assert isinstance(play(*[HUNG] * 5, BUSY, BUSY, BUSY)[-1], Clear)
