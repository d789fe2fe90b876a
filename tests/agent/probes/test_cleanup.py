from agent.probes.cleanup import FAILED, STUCK, ZOMBIE
from tests.agent.made import replica, uuid
from tests.agent.probes.replicas import cleared, codes, only, see
from vocab.observations import Exit, GpuProcess, GpuSample, ProcessSeen
from vocab.readings import Readings

PIDS = (900, 910, 911)
LIFE = replica(0.0, pids=PIDS, step=1, running=1)
END = replica(10.0, phase="stopped", exit=Exit(signal=9))


def process(at, pid, state="S", **more):
    return ProcessSeen(at=at, node="n1", pid=pid, state=state, replica="r1", **more)


def listed(at, *pids):
    processes = tuple(GpuProcess(pid=pid, used_bytes=2**30) for pid in pids)
    return GpuSample(at=at, node="n1", gpu=uuid(0), readings=Readings(memory_used_bytes=2**33), processes=processes)


def test_processes_that_outlive_their_replica_for_half_a_minute_are_a_failed_cleanup():
    found = see(LIFE, END, process(18.0, 910), process(18.0, 911), until=60.0)
    failed = only(found, FAILED)
    assert (failed.at, failed.fields["pids"]) == (40.0, [910, 911])


def test_processes_that_go_in_time_are_none():
    found = see(LIFE, END, process(18.0, 910), process(25.0, 910, "gone"), until=60.0)
    assert FAILED not in codes(found)


def test_a_failed_cleanup_ends_with_its_processes():
    found = see(LIFE, END, process(18.0, 910), process(90.0, 910, "gone"))
    assert cleared(found) == [FAILED]


def test_the_leader_is_gone_by_its_exit():
    assert FAILED not in codes(see(LIFE, process(5.0, 900), END, until=60.0))


def test_a_zombie_has_ended():
    found = see(LIFE, END, process(18.0, 910, "Z"), process(18.0, 911, "Z"), until=60.0)
    assert not {FAILED, STUCK} & set(codes(found))


def test_a_process_that_cannot_die_is_stuck_in_the_kernel_on_its_gpu():
    found = see(LIFE, END, process(18.0, 910, "D"), process(18.0, 911, "gone"), until=60.0)
    stuck = only(found, STUCK)
    assert (stuck.gpu, stuck.pid, stuck.fields["pids"]) == (uuid(0), 910, [910])


def test_a_stuck_process_is_placed_where_its_memory_is():
    pair = replica(0.0, pids=(1, 2), gpus=(uuid(0), uuid(1)))
    end = replica(10.0, gpus=(uuid(0), uuid(1)), phase="stopped", exit=Exit(signal=9))
    found = see(pair, end, process(18.0, 2, "D", used_bytes={uuid(1): 2**30}), until=60.0)
    assert only(found, STUCK).gpu == uuid(1)


def test_memory_of_a_process_that_is_gone_needs_a_reset():
    found = see(LIFE, END, process(18.0, 910, "gone"), listed(20.0, 910), until=60.0)
    assert only(found, ZOMBIE).gpu == uuid(0)


def test_memory_that_the_host_books_on_a_zombie_needs_a_reset_until_the_gpu_says_that_it_is_free():
    dead = process(18.0, 910, "Z", used_bytes={uuid(0): 2**30})
    assert only(see(LIFE, END, dead, until=60.0), ZOMBIE).gpu == uuid(0)
    assert ZOMBIE not in codes(see(LIFE, END, dead, listed(20.0), until=60.0))
    assert cleared(see(LIFE, END, dead, process(90.0, 910, "gone"))) == [ZOMBIE]


def test_memory_that_was_listed_before_the_end_proves_nothing():
    assert not {FAILED, ZOMBIE} & set(codes(see(LIFE, listed(5.0, *PIDS), END, until=60.0)))


def test_processes_of_others_are_not_named():
    found = see(LIFE, END, listed(20.0, 4711), until=60.0)
    assert not {FAILED, ZOMBIE} & set(codes(found))


def test_a_pid_that_another_process_has_now_is_not_the_replicas():
    found = see(
        LIFE, process(1.0, 910, start_s=5.0), END, ProcessSeen(at=20.0, node="n1", pid=777, state="R"), until=60.0
    )
    assert only(found, FAILED).fields["pids"] == [910]
