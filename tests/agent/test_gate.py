from agent.gate import Sighted, admitted
from tests.agent.made import NODE, uuid
from vocab.messages import HoldSpec, ReplicaSpec
from vocab.observations import Member


def spec(name="r1", phase="run", index=0, node=NODE):
    return ReplicaSpec(
        replica=name, deployment="chat", members=(Member(node=node, gpu=uuid(index)),), model="m", phase=phase
    )


def sighted(known=(), living=(), proven=(0, 1), paused=False):
    return Sighted(
        node=NODE,
        known=frozenset(known),
        living=frozenset(living),
        proven=frozenset(map(uuid, proven)),
        paused=paused,
    )


def test_nothing_starts_before_its_gpu_was_read_with_success():
    assert admitted([spec()], (), (), sighted(proven=())) == ()
    assert admitted([spec()], (), (), sighted()) == (spec(),)


def test_nothing_starts_on_a_held_gpu():
    hold = HoldSpec(id="h", gpu=uuid(0), owner="alice", reason="")
    assert admitted([spec(), spec("r2", index=1)], (), [hold], sighted()) == (spec("r2", index=1),)


def test_what_lives_is_kept_whatever_is_known_of_its_gpu():
    hold = HoldSpec(id="h", gpu=uuid(0), owner="alice", reason="")
    assert admitted([spec()], (), [hold], sighted(known=["r1"], living=["r1"], proven=())) == (spec(),)


def test_drains_and_stops_need_no_proof():
    wanted = [spec(phase="drain"), spec("r2", phase="stop")]
    assert admitted(wanted, (), (), sighted(proven=())) == tuple(wanted)


def test_members_on_other_nodes_are_not_ours_to_prove():
    assert admitted([spec(node="n2", index=7)], (), (), sighted()) == (spec(node="n2", index=7),)


def test_a_pause_keeps_what_lives_from_being_drained_stopped_or_forgotten():
    running = sighted(known=["r1", "r2"], living=["r1", "r2"], paused=True)
    kept = admitted([spec(phase="drain")], [spec(), spec("r2", index=1)], (), running)
    assert sorted((s.replica, s.phase) for s in kept) == [("r1", "run"), ("r2", "run")]


def test_a_pause_does_not_stop_a_drain_that_has_begun_nor_a_start():
    running = sighted(known=["r1"], living=["r1"], paused=True)
    wanted = [spec(phase="drain"), spec("r2", index=1)]
    assert admitted(wanted, [spec(phase="drain")], (), running) == tuple(wanted)
