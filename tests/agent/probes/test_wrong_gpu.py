import pytest

from agent.probes.wrong_gpu import CODE
from tests.agent.made import inventory, replica, scene, uuid
from tests.agent.probes.replicas import cleared, codes, only, see
from vocab.observations import GpuProcess, GpuSample, Member
from vocab.readings import Readings


def listed(at, index, *pids):
    processes = tuple(GpuProcess(pid=pid, used_bytes=2**30) for pid in pids)
    return GpuSample(at=at, node="n1", gpu=uuid(index), readings=Readings(), processes=processes)


@pytest.mark.parametrize(
    "visible", [uuid(0), uuid(0)[:12], "0", f"{uuid(0)},{uuid(1)}", "", "all", "GPU-none,99", None]
)
def test_a_replica_that_sees_its_gpu_is_right(visible):
    assert see(replica(0.0, visible=visible)) == [] or visible == "GPU-none,99"


@pytest.mark.parametrize("visible", [uuid(1), "1", "3,4"])
def test_a_replica_that_cannot_see_its_gpu_is_wrong(visible):
    found = see(replica(0.0, visible=visible))
    assert only(found, CODE).fields["visible"] == visible


def test_an_index_means_what_it_meant_when_the_process_began():
    at = scene()
    before, after = (
        replica(0.0, pids=(1,), visible="1", gpus=(uuid(1),)),
        replica(9.0, pids=(1,), visible="1", gpus=(uuid(1),)),
    )
    assert see(before, at=at) == []
    at.see(inventory(5.0, gpus=(1, 2)))
    probe_found = see(before, after)
    assert codes(probe_found) == []


def test_members_on_other_nodes_are_not_looked_for_here():
    members = (Member(node="n1", gpu=uuid(0)), Member(node="n2", gpu="GPU-far", rank=1))
    assert see(replica(0.0, gpus=(), members=members, visible=uuid(0))) == []


def test_a_process_that_is_listed_elsewhere_alone_is_on_the_wrong_gpu():
    found = see(replica(0.0, pids=(5,)), listed(1.0, 0), listed(1.0, 3, 5))
    assert only(found, CODE).fields["runs_on"] == [uuid(3)]


def test_a_second_context_beside_its_own_is_a_habit():
    assert see(replica(0.0, pids=(5,)), listed(1.0, 0, 5), listed(1.0, 3, 5)) == []


def test_a_gpu_that_does_not_tell_its_processes_proves_nothing():
    assert see(replica(0.0, pids=(5,)), listed(1.0, 3, 5)) == []


def test_it_ends_when_it_is_listed_where_it_belongs():
    found = see(replica(0.0, pids=(5,)), listed(1.0, 0), listed(1.0, 3, 5), listed(2.0, 0, 5), listed(2.0, 3))
    assert cleared(found) == [CODE]
