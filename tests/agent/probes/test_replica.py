from agent.probes.probe import Clear
from agent.probes.replica import DIED, STALLED, ReplicaProbe
from tests.agent.made import replica, scene, uuid
from vocab.observations import Exit


def play(*looks, step=1.0):
    probe, found = ReplicaProbe(), []
    for turn, look in enumerate(looks):
        at = turn * step
        found += [(at, v) for v in probe.observe(replica(at, **look), scene(), at)]
    return found


WORKING = [{"step": s, "running": 4, "waiting": 3, "health": None} for s in range(20)]
WEDGED = {"step": 7, "running": 8, "waiting": 2, "health": 200}
IDLE = {"step": 7, "running": 0, "waiting": 0}


def test_an_engine_that_steps_is_busy_however_slow_its_health_answers():
    assert play(*WORKING) == []


def test_work_without_a_step_for_five_seconds_is_a_stall_whatever_health_says():
    ((at, found),) = play(*[WEDGED] * 20)
    assert (at, found.code) == (5.0, STALLED)
    assert found.fields["replica"] == "r1"
    assert found.fields["gpus"] == [uuid(0)]


def test_slow_steps_get_five_times_their_own_tail():
    looks = [WEDGED | {"p999_step_s": 3.0}] * 20
    ((at, _),) = play(*looks)
    assert at == 15.0


def test_an_idle_engine_is_healthy_for_ever():
    assert play(*[IDLE] * 100) == []


def test_the_wait_begins_when_the_work_comes():
    ((at, _),) = play(*[IDLE] * 50, *[WEDGED] * 10)
    assert at == 55.0


def test_what_is_not_known_changes_nothing():
    gaps = [WEDGED, {}, {}, WEDGED, {}, {}, WEDGED, WEDGED]
    assert [found.code for _, found in play(*gaps)] == [STALLED]


def test_a_counter_that_falls_is_a_new_engine():
    assert play(*[{"step": 90000, "running": 1}] * 4, *[{"step": 12, "running": 1}] * 4) == []


def test_loading_is_not_stalling():
    assert play(*[WEDGED | {"phase": "starting"}] * 30) == []


def test_a_step_ends_the_stall():
    looks = [*[WEDGED] * 10, WEDGED | {"step": 8}]
    assert isinstance(play(*looks)[-1][1], Clear)


def test_an_end_that_nobody_asked_for_is_a_death_and_counts_once():
    gone = {"phase": "stopped", "exit": Exit(signal=9)}
    found = play(WORKING[0], gone, gone)
    assert [v.code for _, v in found] == [DIED]


def test_an_end_after_a_drain_is_what_was_asked_for():
    assert play(WORKING[0], {"phase": "draining"}, {"phase": "stopped", "exit": Exit(code=3)}) == []


def test_a_replica_that_lives_again_clears_its_death():
    gone = {"phase": "stopped", "exit": Exit(code=1)}
    assert isinstance(play(WORKING[0], gone, WORKING[0])[-1][1], Clear)
