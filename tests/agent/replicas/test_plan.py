import msgspec
import pytest

from agent.replicas.plan import (
    GRACE_S,
    LIVING,
    RESTARTS,
    RETRY_S,
    RULES,
    WINDOW_S,
    Actual,
    Stage,
    Want,
    plan,
)
from agent.replicas.steps import Drain, Fence, Forget, GiveUp, Kill, Start, Step, Terminate, Unfence, Withdraw
from tests.agent.replicas.node import spec
from vocab.observations import Member

NOW = 1000.0
NONE: frozenset[str] = frozenset()


def actual(stage: Stage, replica: str = "r1", **more: object) -> Actual:
    values = {"spec": spec(replica, "GPU-1"), "stage_at": NOW, "admitting": True, **more}
    return Actual(replica=replica, stage=stage, **values)


def steps(
    wanted: str | None, *found: Actual, fenced: frozenset[str] = NONE, now: float = NOW, **more: object
) -> list[Step]:
    """The plan for r1 on GPU-1, wanted in this phase (None: not named)."""
    desired = [] if wanted is None else [spec("r1", "GPU-1", phase=wanted, **more)]
    return list(plan(desired, found, fenced, now))


def test_every_want_meets_every_stage_in_the_table() -> None:
    assert set(RULES) == {(want, stage) for want in Want for stage in Stage}


@pytest.mark.parametrize("stage", Stage)
def test_an_agent_that_knows_nothing_only_ever_fences(stage: Stage) -> None:
    later = NOW + 10_000.0
    assert plan(None, [actual(stage, admitting=False)], NONE, later) == ()
    fenced = plan(None, [actual(stage)], frozenset({"GPU-1"}), later)
    assert fenced == ((Fence("r1"),) if stage is Stage.RUNNING else ())


def test_what_is_wanted_and_absent_is_started() -> None:
    assert steps("run") == [Start(spec("r1", "GPU-1"))]


def test_nothing_starts_on_a_fenced_gpu() -> None:
    assert steps("run", fenced=frozenset({"GPU-1"})) == []


@pytest.mark.parametrize("stage", sorted(LIVING))
def test_nothing_starts_on_a_gpu_where_another_process_lives(stage: Stage) -> None:
    other = actual(stage, "r0", spec=spec("r0", "GPU-1"), stage_at=NOW - 0.5, drain_taken=True)
    assert not [step for step in steps("run", other) if isinstance(step, Start)]


def test_two_specs_that_name_one_gpu_start_once() -> None:
    desired = [spec("r1", "GPU-1"), spec("r2", "GPU-1")]
    assert plan(desired, [], NONE, NOW) == (Start(desired[0]),)


def test_a_fence_is_tried_again_until_it_is_taken() -> None:
    fenced = frozenset({"GPU-1"})
    assert steps("run", actual(Stage.RUNNING), fenced=fenced) == [Fence("r1")]
    assert steps("run", actual(Stage.RUNNING, tried_at=NOW - 0.1), fenced=fenced) == []
    assert steps("run", actual(Stage.RUNNING, tried_at=NOW - 0.3), fenced=fenced) == [Fence("r1")]
    assert steps("run", actual(Stage.RUNNING, admitting=False), fenced=fenced) == []


def test_a_replica_whose_admission_is_not_known_is_fenced_to_be_sure() -> None:
    assert steps("run", actual(Stage.RUNNING, admitting=None), fenced=frozenset({"GPU-1"})) == [Fence("r1")]


def test_a_lifted_fence_lets_it_admit_again() -> None:
    assert steps("run", actual(Stage.RUNNING, admitting=False)) == [Unfence("r1")]


@pytest.mark.parametrize("phase", ["drain", "stop", None])
def test_an_end_begins_with_a_drain(phase: str | None) -> None:
    assert steps(phase, actual(Stage.RUNNING)) == [Drain("r1", 20.0)]


def test_prestop_takes_it_out_of_rotation_first() -> None:
    found = actual(Stage.RUNNING)
    assert steps("drain", found, prestop_s=5.0) == [Withdraw("r1")]
    gone = actual(Stage.WITHDRAWN, admitting=False)
    assert steps("drain", gone, prestop_s=5.0, now=NOW + 4.9) == []
    assert steps("drain", gone, prestop_s=5.0, now=NOW + 5.0) == [Drain("r1", 20.0)]


def test_a_drain_that_is_called_off_before_it_was_said_lets_it_in_again() -> None:
    assert steps("run", actual(Stage.WITHDRAWN, admitting=False)) == [Unfence("r1")]


def test_an_exit_that_was_asked_for_goes_on_though_it_is_wanted_again() -> None:
    found = actual(Stage.DRAINING, drain_taken=True, admitting=False)
    assert steps("run", found, now=NOW + 10.0) == []
    assert steps("run", found, now=NOW + 20.0 + GRACE_S) == [Terminate("r1")]


def test_a_drain_that_was_not_heard_is_said_again_with_the_time_that_is_left() -> None:
    found = actual(Stage.DRAINING, tried_at=NOW + 5.0)
    assert steps("drain", found, now=NOW + 5.0 + RETRY_S / 2) == []
    assert steps("drain", found, now=NOW + 5.0 + RETRY_S) == [Drain("r1", 20.0 - 5.0 - RETRY_S)]


def test_what_cannot_be_asked_is_signalled() -> None:
    assert steps("drain", actual(Stage.RUNNING, refuses=True)) == [Terminate("r1")]
    assert steps("drain", actual(Stage.DRAINING, refuses=True)) == [Terminate("r1")]


def test_a_draining_engine_that_closed_its_door_is_left_to_finish() -> None:
    assert steps("drain", actual(Stage.DRAINING, refuses=True, drain_taken=True), now=NOW + 10.0) == []


def test_sigkill_comes_kill_s_after_sigterm_and_again() -> None:
    assert steps("drain", actual(Stage.TERMINATED), kill_s=5.0, now=NOW + 4.0) == []
    assert steps("drain", actual(Stage.TERMINATED), kill_s=5.0, now=NOW + 5.0) == [Kill("r1")]
    assert steps("drain", actual(Stage.KILLED), kill_s=5.0, now=NOW + 5.0) == [Kill("r1")]


def test_a_replica_of_another_shape_is_replaced() -> None:
    found = actual(Stage.RUNNING, spec=spec("r1", "GPU-2"))
    assert steps("run", found) == [Drain("r1", 20.0)]


def test_new_times_or_a_new_token_replace_nothing() -> None:
    assert steps("run", actual(Stage.RUNNING), token="1.9", drain_s=60.0) == []


def test_a_crash_waits_its_back_off() -> None:
    found = actual(Stage.ENDED, crashes=(NOW,))
    assert steps("run", found, now=NOW + 0.1) == []
    assert steps("run", found, now=NOW + 1.0) == [Start(spec("r1", "GPU-1"), (NOW,))]


def test_too_many_crashes_end_the_restarts() -> None:
    crashes = tuple(NOW - at for at in range(RESTARTS + 1))
    assert steps("run", actual(Stage.ENDED, crashes=crashes), now=NOW + 60.0) == [GiveUp("r1")]
    assert steps("run", actual(Stage.ENDED, crashes=crashes, given_up=True), now=NOW + 60.0) == []


def test_a_new_token_has_a_budget_of_its_own() -> None:
    found = actual(Stage.ENDED, crashes=(NOW,) * 9, given_up=True)
    assert steps("run", found, token="1.2") == [Start(spec("r1", "GPU-1", token="1.2"))]


def test_old_crashes_do_not_count() -> None:
    crashes = tuple(NOW - WINDOW_S - at for at in range(9))
    assert steps("run", actual(Stage.ENDED, crashes=crashes)) == [Start(spec("r1", "GPU-1"))]


def test_what_was_given_up_stays_down_when_its_crashes_are_old() -> None:
    found = actual(Stage.ENDED, crashes=(NOW - 2 * WINDOW_S,), given_up=True)
    assert steps("run", found) == []


def test_an_end_that_was_asked_for_is_no_crash() -> None:
    assert steps("run", actual(Stage.ENDED, asked=True)) == [Start(spec("r1", "GPU-1"))]


def test_what_has_ended_and_is_not_named_is_forgotten() -> None:
    assert steps(None, actual(Stage.ENDED)) == [Forget("r1")]
    assert steps("stop", actual(Stage.ENDED)) == []


def test_a_part_of_a_group_that_ended_waits_for_another_order() -> None:
    members = (Member(node="n1", gpu="GPU-1"), Member(node="n2", gpu="GPU-2", rank=1))
    part = msgspec.structs.replace(spec("r1", "GPU-1"), members=members)
    ended = actual(Stage.ENDED, spec=part, crashes=(NOW,))
    assert plan([part], [ended], NONE, NOW + 600.0) == ()
    anew = msgspec.structs.replace(part, token="1.2")
    assert plan([anew], [ended], NONE, NOW + 600.0) == (Start(anew),)
