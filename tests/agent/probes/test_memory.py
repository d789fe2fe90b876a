import msgspec

from agent.probes.leak import LeakProbe
from agent.probes.memory import MemoryProbe
from tests.agent.made import replica, sample, scene, uuid
from vocab.observations import Exit, GpuProcess, ProcessSeen

GIB = 2**30


def used(at, gib, *processes, index=0, **more):
    listed = tuple(GpuProcess(pid=pid, used_bytes=None if held is None else int(held * GIB)) for pid, held in processes)
    readings = {"memory_used_bytes": int(gib * GIB), "memory_total_bytes": 80 * GIB, "utilization_ratio": 0.0} | more
    return msgspec.structs.replace(sample(float(at), index, **readings), processes=listed)


def unlisted(at, gib):
    return msgspec.structs.replace(used(at, gib), processes=None)


def play(*observations, probe=None):
    probe = probe or MemoryProbe()
    return [(type(v).__name__, v.code) for seen in observations for v in probe.observe(seen, scene(), seen.at)]


def thrice(made, *args, **more):
    return [made(at, *args, **more) for at in (1, 2, 3)]


def test_memory_of_the_driver_itself_is_nobodys():
    assert play(*thrice(used, 1.5)) == []


def test_memory_that_listed_processes_own_is_known():
    assert play(*thrice(used, 70.0, (1, 40.0), (2, 29.0))) == []


def test_reserved_memory_is_the_drivers():
    assert play(*thrice(used, 12.0, memory_reserved_bytes=11 * GIB)) == []


def test_memory_that_nobody_owns_up_to_is_said_after_three_looks():
    assert play(used(1, 30.0), used(2, 30.0)) == []
    assert play(*thrice(used, 30.0)) == [("Finding", "unknown_consumer")]


def test_without_a_list_or_a_figure_nothing_can_be_said():
    assert play(*thrice(unlisted, 30.0)) == []
    assert play(*thrice(used, 30.0, (9, None))) == []


def test_under_mig_the_sum_of_the_gpu_says_nothing():
    assert play(*thrice(used, 30.0, mig_mode=1)) == []


def test_memory_of_a_replica_that_the_list_lacks_is_a_list_that_lies():
    alive = replica(0.5, pids=(9,))
    assert play(alive, *thrice(used, 30.0)) == [("Finding", "process_info_mismatch")]


def test_a_replica_that_has_ended_owns_nothing():
    ended = replica(0.7, exit=Exit(code=0))
    assert play(replica(0.5), ended, *thrice(used, 30.0)) == [("Finding", "unknown_consumer")]


def test_a_process_that_the_host_sees_owns_what_it_holds():
    seen = ProcessSeen(at=0.5, pid=9, state="R", used_bytes={uuid(0): 29 * GIB})
    assert play(seen, *thrice(used, 30.0)) == [("Finding", "process_info_mismatch")]


def test_busy_with_no_process_is_a_list_that_lies():
    assert play(*thrice(used, 1.0, utilization_ratio=0.93)) == [("Finding", "process_info_mismatch")]


def test_more_owned_than_used_is_a_list_that_lies():
    assert play(*thrice(used, 10.0, (1, 50.0))) == [("Finding", "process_info_mismatch")]


def grown(*gib, step=300, **more):
    return [used(n * step, held + 1, (9, held), **more) for n, held in enumerate(gib)]


def leak(*observations):
    return play(*observations, probe=LeakProbe())


def test_memory_that_only_grows_while_nothing_runs_is_a_leak():
    assert leak(*grown(1, 2, 3, 4, 5, 6, 7, 8)) == [("Finding", "memory_leak")]


def test_memory_that_grows_under_work_may_be_cache():
    assert leak(*grown(*range(1, 20), utilization_ratio=0.8)) == []


def test_memory_that_is_taken_in_one_piece_is_a_program_that_loads():
    assert leak(*grown(1, 40, 40, 40, 40, 40, 40, 40, 40)) == []


def test_memory_that_falls_again_is_no_leak():
    assert leak(*grown(1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5)) == []


def test_a_leak_ends_with_its_process():
    gone = used(9_000, 1.0)
    assert leak(*grown(1, 2, 3, 4, 5, 6, 7, 8), gone) == [("Finding", "memory_leak"), ("Clear", "memory_leak")]
