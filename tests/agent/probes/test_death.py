import pytest

from agent.probes.autopsy import CODE
from tests.agent.made import replica, uuid
from tests.agent.probes.replicas import cleared, codes, only, play, see
from vocab.observations import Exit, LogLine, ProcessSeen

WORKING = {"step": 1, "running": 4, "waiting": 3}
SIX = {"pids": (900, 910)}


def process(at, pid, state, **more):
    return ProcessSeen(at=at, node="n1", pid=pid, state=state, **more)


def test_an_end_that_nobody_asked_for_is_a_death_and_counts_once():
    gone = {"phase": "stopped", "exit": Exit(signal=9)}
    assert codes(play(WORKING, gone, gone)) == [CODE]


@pytest.mark.parametrize("reason", ["asked", "drained", "cut off", "killed"])
def test_an_end_that_was_ordered_is_no_death(reason):
    assert play(WORKING, {"phase": "stopped", "exit": Exit(signal=9, reason=reason)}) == []


def test_an_end_after_a_drain_is_what_was_asked_for():
    assert play(WORKING, {"phase": "draining"}, {"phase": "stopped", "exit": Exit(code=3)}) == []


def test_a_replica_that_serves_again_clears_its_death():
    gone = {"phase": "stopped", "exit": Exit(code=1)}
    assert cleared(play(WORKING, gone, {"phase": "starting"}, WORKING)) == [CODE]


def test_a_replica_that_only_starts_again_is_not_well_yet():
    gone = {"phase": "stopped", "exit": Exit(code=1)}
    assert cleared(play(WORKING, gone, {"phase": "starting"}, {"phase": "starting"})) == []


def test_each_life_dies_once():
    gone, starts = {"phase": "stopped", "exit": Exit(code=1)}, {"phase": "starting"}
    assert codes(play(WORKING, gone, starts, gone, gone, starts, gone)) == [CODE] * 3


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        (Exit(signal=11), "crashed_by_itself"),
        (Exit(code=139), "crashed_by_itself"),
        (Exit(code=1), "crashed_by_itself"),
        (Exit(signal=15), "stopped_from_outside"),
        (Exit(code=143), "stopped_from_outside"),
        (Exit(code=137), "killed"),
        (Exit(code=137, reason="OOMKilled"), "out_of_memory"),  # Kubernetes and Docker
        (Exit(signal=9, reason="oom-kill"), "out_of_memory"),  # systemd
        (Exit(reason="OUT_OF_MEMORY"), "out_of_memory"),  # Slurm
        (Exit(code=137, reason="Evicted"), "stopped_from_outside"),
        (Exit(code=137, reason="Error"), "killed"),
        (Exit(), "unseen"),
        (Exit(code=4, reason="gpu fault"), "killed_by_gpu"),
        (Exit(code=5, reason="out of memory"), "out_of_gpu_memory"),
        (Exit(code=4, reason="crashed"), "crashed_by_itself"),  # of an engine whose codes mean nothing to us
        (Exit(code=1, text="torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"), "killed_by_gpu"),
        (Exit(code=1, text="CUDA error: an illegal memory access was encountered"), "crashed_by_itself"),
        (Exit(code=1, text="CUDA out of memory. Tried to allocate 2.00 GiB"), "out_of_gpu_memory"),
    ],
)
def test_the_exit_says_by_what(how, verdict):
    assert only(play(WORKING, {"phase": "stopped", "exit": how}), CODE).fields["verdict"] == verdict


def test_a_cuda_error_that_was_printed_just_before_names_the_cause():
    line = "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution"
    gone = replica(2.0, phase="stopped", exit=Exit(code=1))
    died = only(see(replica(0.0, **WORKING), LogLine(at=1.0, node="n1", replica="r1", line=line), gone), CODE)
    assert (died.fields["error"], died.fields["verdict"]) == (220, "killed_by_gpu")
    assert died.fields["suspects"] == [{"gpu": uuid(0), "confidence": "low"}]


def test_three_refusals_in_a_row_are_a_death():
    looks = [WORKING, *[{"step": None, "running": None, "health": "refused"}] * 3]
    assert [at for at, _ in play(*looks, step=10.0)] == [30.0]


def test_two_refusals_are_a_hiccup():
    shut, wells = {"health": "refused"}, [{"step": step, "running": 1, "health": 200} for step in range(3)]
    assert play(wells[0], shut, shut, wells[1], shut, shut, wells[2], step=5.0) == []


@pytest.mark.parametrize("answer", [500, 503])
def test_an_engine_that_says_that_its_core_is_gone_is_believed_the_third_time(answer):
    assert codes(play(WORKING, *[WORKING | {"health": answer}] * 3, step=10.0)) == [CODE]


def test_a_door_that_refuses_while_the_engine_steps_is_no_death():
    assert play(*[{"step": s, "running": 4, "health": "refused"} for s in range(10)]) == []


def test_an_engine_that_starts_may_refuse():
    assert play(*[{"phase": "starting", "health": "refused"}] * 10) == []


def test_an_engine_whose_core_is_gone_is_dead_at_once_whatever_its_door_answers():
    looks = [replica(0.0, **WORKING, **SIX, health=200), process(5.0, 910, "gone", replica="r1")]
    looks += [replica(float(at), step=1, running=0, waiting=3, health=200, pids=(900,)) for at in range(6, 30)]
    found = see(*looks)
    assert [at for at, verdict in found if verdict.code == CODE] == [5.0]
    assert cleared(found) == []


def test_a_zombie_is_gone():
    looks = [replica(0.0, **WORKING, **SIX), process(5.0, 910, "Z")]
    assert codes(see(*looks)) == [CODE]


def test_the_end_of_somebody_elses_process_is_nobodys_death():
    assert see(replica(0.0, **WORKING, **SIX), process(5.0, 4711, "gone")) == []


def test_a_process_that_is_named_no_longer_is_a_death_only_if_nothing_moves():
    flat = [{"step": 7, "running": 2, "pids": (900, 910)}, {"step": 7, "running": 2, "pids": (900,)}]
    assert codes(play(*flat)) == [CODE]
    moves = [{"step": 7, "running": 2, "pids": (900, 910)}, {"step": 9, "running": 2, "pids": (900,)}]
    assert play(*moves) == []


def test_a_sticky_error_without_a_step_is_a_death():
    assert codes(play(WORKING, *[WORKING | {"error": 700}] * 2)) == [CODE]


def test_an_error_that_it_survives_is_none():
    assert play(*[{"step": s, "running": 1, "error": "UNKNOWN"} for s in range(5)]) == []
    assert play(*[{"step": s, "running": 1, "error": 700} for s in range(5)]) == []


def test_memory_that_did_not_fit_is_no_fault():
    assert play(*[WORKING | {"error": 2, "p999_step_s": 60.0}] * 5) == []


def test_an_observed_engine_that_its_owner_stops_has_not_died():
    for how in (Exit(signal=15), Exit(code=143), None):
        assert play(WORKING | {"observed": True}, {"observed": True, "phase": "stopped", "exit": how}) == []


def test_an_observed_engine_can_crash():
    assert codes(play(WORKING | {"observed": True}, {"observed": True, "exit": Exit(signal=11)})) == [CODE]
