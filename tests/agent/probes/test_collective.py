import pytest

from agent.probes.collective import CODE, Timeout, parse
from tests.agent.made import replica, uuid
from tests.agent.probes.replicas import cleared, codes, see
from vocab.observations import Exit, LogLine

EIGHT = tuple(uuid(index) for index in range(8))


def line(rank, seq=501, op="ALLREDUCE"):
    return (
        f"[rank{rank}]:[E101 10:00:00.000000001 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) "
        "ran for 600041 milliseconds before timing out."
    )


def told(at, rank, **more):
    return LogLine(at=at, node="n1", replica="r1", rank=rank, line=line(rank, **more))


def look(at, **more):
    return replica(at, gpus=EIGHT, **({"step": 9, "tokens": 100, "running": 5, "health": 200} | more))


def test_a_line_is_read_whole():
    assert parse(line(3)) == Timeout(rank=3, seq=501, op="ALLREDUCE", timeout_ms=600000, ran_ms=600041)


@pytest.mark.parametrize("text", ["", "collective operation timeout", "Watchdog caught collective operation timeout:"])
def test_what_is_no_such_line_is_none(text):
    assert parse(text) is None


def test_the_rank_that_never_arrived_is_the_suspect_once_the_grace_is_over():
    found = see(look(0.0), *(told(1.0, rank) for rank in (0, 1, 2, 4, 5, 6, 7)), look(10.0), until=60.0)
    assert codes(found) == [CODE] * 8
    assert {verdict.first for _, verdict in found} == {found[0][1].first}
    at, last = found[-1]
    assert (at, last.count, last.fields["suspects"]) == (31.0, 0, [{"gpu": uuid(3), "confidence": "medium"}])
    assert last.fields["ranks"] == [0, 1, 2, 4, 5, 6, 7]


def test_a_rank_that_waits_at_an_earlier_collective_is_the_suspect():
    found = see(look(0.0), *(told(1.0, rank, seq=500 if rank == 6 else 501) for rank in range(8)), until=60.0)
    assert found[-1][1].fields["suspects"] == [{"gpu": uuid(6), "confidence": "medium"}]


def test_a_rank_that_says_it_twice_counts_once():
    assert len(see(look(0.0), told(1.0, 0), told(1.1, 0), told(1.2, 0))) == 1


def test_where_most_are_silent_nobody_is_suspected():
    found = see(look(0.0), told(1.0, 0), told(1.0, 1), until=60.0)
    assert "suspects" not in found[-1][1].fields


def test_processes_that_end_by_themselves_leave_nobody_to_suspect():
    found = see(look(0.0), told(1.0, 0), look(15.0, phase="stopped", exit=Exit(code=1)), until=60.0)
    assert [verdict.code for _, verdict in found].count(CODE) == 1


def test_a_replica_that_moves_again_waits_no_longer():
    assert cleared(see(look(0.0), told(1.0, 0), look(5.0, step=10))) == [CODE]


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[E ProcessGroupNCCL.cpp:475] [Rank 3] ", 3),
        ("[rank3]:[E606 09:09:08.169193939 ProcessGroupNCCL.cpp:523] [PG 0 Rank 3] ", 3),
        ("[rank3]:[E606 09:09:08.169193939 ProcessGroupNCCL.cpp:629] [PG ID 0 PG GUID 0(default_pg) Rank 3] ", 3),
        ("[rank5]:[E606 09:09:08.169193939 ProcessGroupNCCL.cpp:629] [PG ID 2 PG GUID 3(tp) Rank 1] ", 5),
        ("(Worker pid=7) [rank7]:[E606 09:09:08.169193939 ProcessGroupNCCL.cpp:629] [PG ID 1 PG GUID 1 Rank 7] ", 7),
    ],
)
def test_the_rank_is_the_replicas_own_whatever_group_the_library_names(prefix, rank):
    found = parse(prefix + line(0).partition("] [Rank 0] ")[2])
    assert found is not None
    assert found.rank == rank
