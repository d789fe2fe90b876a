import pytest

from agent.probes.stall import CODE
from tests.agent.made import replica, sample, uuid
from tests.agent.probes.replicas import cleared, codes, only, play, see
from vocab.observations import Check, ClockStep, Exit

WORKING = [{"step": s, "running": 4, "waiting": 3, "health": None} for s in range(20)]
WEDGED = {"step": 7, "running": 8, "waiting": 2, "health": 200}
IDLE = {"step": 7, "running": 0, "waiting": 0}
TOLD = {"p999_step_s": 0.02}


def times(found):
    return [at for at, verdict in found if verdict.code == CODE]


def test_an_engine_that_steps_is_busy_however_slow_its_health_answers():
    assert play(*WORKING) == []
    assert play(*[look | {"health": "timeout"} for look in WORKING]) == []


def test_an_engine_that_tells_its_tail_is_stalled_after_five_seconds_whatever_health_says():
    found = play(*[WEDGED | TOLD] * 20)
    assert times(found) == [5.0]
    stalled = only(found, CODE)
    assert stalled.fields["replica"] == "r1"
    assert stalled.fields["gpus"] == [uuid(0)]
    assert stalled.fields["still_since"] == 0.0


def test_slow_steps_get_five_times_their_own_tail():
    assert times(play(*[WEDGED | {"p999_step_s": 3.0}] * 20)) == [15.0]


def test_without_a_tail_of_its_own_an_engine_gets_half_a_minute():
    assert times(play(*[WEDGED] * 40)) == [30.0]


def test_an_idle_engine_is_healthy_for_ever():
    assert play(*[IDLE] * 100, step=60.0) == []


def test_the_wait_begins_when_the_work_comes():
    assert times(play(*[IDLE] * 50, *[WEDGED | TOLD] * 10)) == [55.0]


def test_what_is_not_known_changes_nothing():
    gaps = [WEDGED | TOLD, {}, {}, WEDGED | TOLD, {}, {}, WEDGED | TOLD, WEDGED | TOLD]
    assert codes(play(*gaps)) == [CODE]


def test_a_failed_scrape_is_never_taken_for_idle():
    failed = {"step": None, "running": None, "waiting": None, "health": 200}
    found = play(*[WEDGED] * 2, *[failed] * 40, WEDGED)
    assert codes(found) == [CODE]
    assert cleared(found) == []


def test_a_counter_that_falls_is_an_engine_that_somebody_restarted():
    assert play(*[{"step": 90000, "running": 1}] * 4, *[{"step": 12, "running": 1}] * 4, step=5.0) == []


def test_loading_is_not_stalling():
    assert play(*[WEDGED | {"phase": "starting"}] * 300) == []


def test_a_step_ends_the_stall():
    found = play(*[WEDGED | TOLD] * 10, WEDGED | {"step": 8})
    assert cleared(found) == [CODE]


def test_tokens_count_where_steps_are_not_told():
    flat = {"step": None, "tokens": 103000, "running": 0, "waiting": 3}
    assert codes(play({"step": None, "tokens": 100000, "running": 4, "waiting": 0}, *[flat] * 3, step=60.0)) == [CODE]


def test_requests_that_nobody_takes_up_are_work():
    assert codes(play(*[{"step": 7, "running": 0, "waiting": 3}] * 4, step=30.0)) == [CODE]


@pytest.mark.parametrize("gauges", [{"running": 37, "waiting": 0}, {"running": 37, "waiting": 4}])
def test_gauges_that_never_move_are_stale_where_no_request_is_open(gauges):
    assert play(*[{"step": 7, "open_requests": 0} | gauges] * 100, step=10.0) == []


def test_an_open_request_that_the_engine_does_not_know_of_is_work():
    assert codes(play(*[{"step": 7, "running": 0, "waiting": 0, "open_requests": 2}] * 5, step=30.0)) == [CODE]


def test_a_kernel_on_the_gpu_may_be_one_long_prefill():
    looks = []
    for turn in range(13):
        looks.append(sample(turn * 10.0, 0, utilization_ratio=1.0, sm_active_ratio=0.8, power_w=600.0))
        looks.append(replica(turn * 10.0, step=7, running=1, waiting=0))
    assert times(see(*looks)) == [120.0]


def test_a_gpu_that_is_lost_needs_no_patience():
    looks = [sample(0.0, 0, error="GPU_IS_LOST")]
    looks += [replica(float(turn), step=7, running=1, waiting=0) for turn in range(10)]
    assert times(see(*looks)) == [5.0]


def test_a_failed_canary_needs_no_patience():
    looks = [replica(0.0, **WEDGED), Check(at=1.0, node="n1", check="canary", replica="r1", result="problem")]
    looks += [replica(float(turn), **WEDGED) for turn in range(2, 10)]
    assert times(see(*looks)) == [5.0]


def test_a_node_that_stood_still_as_a_whole_stalled_nobody():
    looks = [replica(0.0, **WEDGED), ClockStep(at=400.0, node="n1", pause_s=395.0), replica(401.0, **WEDGED)]
    assert see(*looks) == []


def test_the_odd_one_out_of_a_hung_collective_is_the_suspect():
    members = tuple(uuid(index) for index in range(8))
    looks = []
    for turn in range(11):
        at = turn * 30.0
        spin = {"utilization_ratio": 1.0, "sm_active_ratio": 0.06, "power_w": 70.0, "power_limit_w": 700.0}
        looks += [sample(at, index, **spin) for index in range(7)]
        looks += [sample(at, 7, **(spin | {"utilization_ratio": 0.0, "sm_active_ratio": 0.0}))]
        looks += [replica(at, gpus=members, step=500, tokens=9000, running=12, waiting=0)]
    found = see(*looks)
    assert times(found) == [120.0]
    assert only(found, CODE).fields["suspects"] == [{"gpu": uuid(7), "confidence": "medium"}]


def test_a_drain_is_not_judged_by_gauges_alone():
    assert play(*[{"step": 7, "running": 37, "waiting": 0, "phase": "draining"}] * 100, step=10.0) == []


def test_a_dead_replica_is_not_stalled_too():
    found = play(WEDGED, WEDGED | {"phase": "stopped", "exit": Exit(signal=9)}, *[WEDGED] * 40)
    assert CODE not in codes(found[:2])
