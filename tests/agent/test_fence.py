import msgspec
import pytest

from agent.fence import Bounds, Fences
from tests.agent.made import sample, uuid
from vocab.events import Event, Flag, Recovery, Scope, Severity, Source
from vocab.messages import HoldSpec
from vocab.states import Level

FREE = Bounds(level=Level.FENCE, paused=False, gpus=8)


def event(code="xid:79", index=0, **changes):
    usual = {
        "id": f"{code}/{index}", "at": None, "node": "n1", "gpu": None if index is None else uuid(index), "code": code,
        "severity": Severity.CRITICAL, "recovery": Recovery.REBOOT_NODE, "scope": Scope.GPU, "source": Source.KERNEL,
    }  # fmt: skip
    return Event(**(usual | changes))


def ops(steps):
    return [(step.op, step.gpu) for step in steps]


def lost(at, index=0):
    return sample(at, index, error="GPU_IS_LOST")


def good(at, index=0):
    return sample(at, index, power_w=70.0)


def hold(index=0, owner="policy", name="h1"):
    return HoldSpec(id=name, gpu=uuid(index), owner=owner, reason="xid:79")


def test_a_kernel_record_of_a_lost_gpu_fences_at_once():
    (step,) = Fences().judged(event(), FREE, 0.0)
    assert (step.op, step.gpu, step.event) == ("placed", uuid(0), "xid:79/0")
    assert "no longer answers" in step.why


@pytest.mark.parametrize("level", [Level.FENCE, Level.CORDON, Level.REPAIR])
def test_every_level_from_fence_on_allows_it(level):
    assert ops(Fences().judged(event(), msgspec.structs.replace(FREE, level=level), 0.0)) == [("placed", uuid(0))]


def test_a_code_whose_rule_is_in_shadow_fences_nothing_and_another_one_does():
    fences, bounds = Fences(), msgspec.structs.replace(FREE, shadowed=frozenset({"xid:79"}))
    assert ops(fences.judged(event(), bounds, 0.0)) == []
    assert ops(fences.sampled(uuid(0), lost(1.0), bounds, 1.0)) == []
    assert ops(fences.judged(event("xid:95"), bounds, 2.0)) == [("placed", uuid(0))]


@pytest.mark.parametrize(
    "harmless",
    [
        event(injected=True),
        event(drill=True),
        event(index=None),
        event(severity=Severity.WARNING),
        event("xid:13", severity=Severity.ERROR),
        event("xid:45", severity=Severity.INFO),
        event("activity_contradiction", severity=Severity.ERROR),
    ],
)
def test_what_is_not_certain_real_bad_and_of_one_gpu_never_fences(harmless):
    fences = Fences()
    assert fences.judged(harmless, FREE, 0.0) == []
    assert fences.sampled(uuid(0), lost(1.0), FREE, 1.0) == []


def test_at_level_observe_nothing_is_done_nor_said():
    observe = msgspec.structs.replace(FREE, level=Level.OBSERVE)
    assert Fences().judged(event(), observe, 0.0) == []


def test_while_paused_it_is_refused_once_and_said():
    fences, paused = Fences(), msgspec.structs.replace(FREE, paused=True)
    assert ops(fences.judged(event(), paused, 0.0)) == [("refused", uuid(0))]
    assert fences.judged(event(), paused, 1.0) == []
    assert fences.sampled(uuid(0), lost(2.0), paused, 2.0) == []


def test_a_fence_refused_while_paused_comes_with_the_next_sign_after_the_pause():
    fences, paused = Fences(), msgspec.structs.replace(FREE, paused=True)
    fences.judged(event(), paused, 0.0)
    assert ops(fences.sampled(uuid(0), lost(2.0), FREE, 2.0)) == [("placed", uuid(0))]


def test_two_good_reads_after_it_end_the_fence_of_a_gpu_that_was_said_to_be_gone():
    fences = Fences()
    fences.judged(event(), FREE, 0.0)
    assert fences.sampled(uuid(0), good(0.5), FREE, 0.5) == []
    assert ops(fences.sampled(uuid(0), good(1.5), FREE, 1.5)) == [("expired", uuid(0))]


def test_good_reads_do_not_end_a_fence_that_has_another_witness():
    fences = Fences()
    fences.judged(event(), FREE, 0.0)
    fences.sampled(uuid(0), lost(1.0), FREE, 1.0)
    assert [fences.sampled(uuid(0), good(t), FREE, t) for t in (2.0, 3.0, 4.0)] == [[], [], []]


def test_a_gpu_that_still_answers_needs_a_second_witness():
    fences = Fences()
    fences.sampled(uuid(0), good(0.0), FREE, 0.0)
    assert fences.judged(event("xid:95"), FREE, 1.0) == []
    assert fences.judged(event("xid:95"), FREE, 2.0) == []
    assert ops(fences.judged(event("xid:154"), FREE, 3.0)) == [("placed", uuid(0))]


def test_a_read_that_fails_is_a_second_witness():
    fences = Fences()
    fences.judged(event("xid:119"), FREE, 1.0)
    assert ops(fences.sampled(uuid(0), sample(2.0, error="UNKNOWN"), FREE, 2.0)) == [("placed", uuid(0))]


def test_witnesses_more_than_two_minutes_apart_are_not_joined():
    fences = Fences()
    fences.judged(event("xid:95"), FREE, 1.0)
    assert fences.judged(event("xid:154"), FREE, 121.0) == []


def test_a_backlog_record_needs_a_read_that_fails():
    fences = Fences()
    assert fences.judged(event(flags=(Flag.BACKLOG,)), FREE, 0.0) == []
    assert ops(fences.sampled(uuid(0), lost(1.0), FREE, 1.0)) == [("placed", uuid(0))]


def test_at_most_two_gpus_that_still_answer_are_fenced_and_the_third_is_refused():
    fences = Fences()
    found = [step for index in range(4) for step in fences.judged(event(index=index), FREE, 0.0)]
    assert [step.op for step in found] == ["placed", "placed", "refused", "refused"]
    assert "too much looks sick" in found[2].why


def test_lost_gpus_are_not_counted():
    fences = Fences()
    for index in range(3):
        fences.judged(event(index=index), FREE, 0.0)
        fences.sampled(uuid(index), lost(1.0, index), FREE, 1.0)
    assert fences.gpus == {uuid(0), uuid(1), uuid(2)}
    assert ops(fences.judged(event(index=3), FREE, 2.0)) == [("placed", uuid(3))]


def test_one_that_was_refused_is_fenced_once_its_loss_is_confirmed():
    fences = Fences()
    for index in range(3):
        fences.judged(event(index=index), FREE, 0.0)
    assert ops(fences.sampled(uuid(2), lost(1.0, 2), FREE, 1.0)) == [("placed", uuid(2))]


@pytest.mark.parametrize(("gpus", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 2), (16, 2)])
def test_never_more_than_half_a_node_but_always_one(gpus, most):
    assert msgspec.structs.replace(FREE, gpus=gpus).most == most


def test_it_expires_after_two_minutes():
    fences = Fences()
    fences.judged(event("xid:95"), FREE, 0.0)
    fences.judged(event("xid:154"), FREE, 0.0)
    assert fences.next_deadline() == 120.0
    assert fences.tick(119.9) == []
    assert ops(fences.tick(120.0)) == [("expired", uuid(0))]
    assert fences.gpus == frozenset()


def test_seen_again_it_lasts_longer():
    fences = Fences()
    fences.judged(event("xid:95"), FREE, 0.0)
    fences.judged(event("xid:154"), FREE, 0.0)
    fences.judged(event("xid:95"), FREE, 100.0)
    assert fences.tick(120.0) == []
    assert ops(fences.tick(220.0)) == [("expired", uuid(0))]


def test_a_gpu_that_does_not_answer_stays_fenced():
    fences = Fences()
    fences.judged(event(), FREE, 0.0)
    fences.sampled(uuid(0), lost(1.0), FREE, 1.0)
    assert [fences.tick(t) for t in (120.0, 240.0, 10_000.0)] == [[], [], []]


def test_the_controllers_hold_replaces_it_and_the_agents_own_does_not():
    fences = Fences()
    fences.judged(event(), FREE, 0.0)
    assert fences.held([hold(owner="agent:n1"), hold(1)]) == []
    assert ops(fences.held([hold()])) == [("replaced", uuid(0))]
    assert fences.held([hold()]) == []
    assert fences.tick(10_000.0) == []
    assert fences.gpus == {uuid(0)}


def test_the_end_of_the_hold_releases_what_it_replaced():
    fences = Fences()
    fences.judged(event(), FREE, 0.0)
    fences.held([hold()])
    assert fences.held([hold(name="h2", owner="alice")]) == []
    assert ops(fences.held([])) == [("released", uuid(0))]


def test_a_hold_of_the_whole_node_counts():
    fences = Fences()
    fences.judged(event(), FREE, 0.0)
    assert ops(fences.held([HoldSpec(id="h", gpu=None, owner="bob", reason="")])) == [("replaced", uuid(0))]


def test_fences_survive_as_bytes():
    fences = Fences()
    fences.judged(event(), FREE, 0.0)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(fences), type=Fences)
    assert again == fences
    assert again.judged(event(), FREE, 1.0) == []
