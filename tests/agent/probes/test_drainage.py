from agent.probes.replica import ReplicaProbe
from tests.agent.made import replica, uuid
from tests.agent.probes.replicas import see
from vocab.observations import GpuProcess, GpuSample
from vocab.readings import Readings


def released(*looks, until):
    probe = ReplicaProbe()
    see(*looks, probe=probe, until=until)
    return probe.released("r1")


def draining(at, **more):
    return replica(at, phase="draining", pids=(5,), **({"step": 9, "tokens": 100, "running": 37, "waiting": 0} | more))


def test_no_open_request_is_empty_whatever_the_gauges_say():
    looks = [draining(0.0, open_requests=37), draining(5.0, open_requests=0), draining(9.0, open_requests=0)]
    assert released(*looks, until=9.0) == ""  # its exit is waited for
    assert released(*looks, until=10.0) == "no request is open: the engine's gauges are stale"


def test_gauges_that_stand_still_for_half_a_minute_are_stale():
    looks = [draining(at, tokens=100 + min(at, 20)) for at in range(0, 50, 5)]
    assert released(*looks, until=45.0) == ""
    assert released(*looks, draining(50.0, tokens=120), until=51.0) == "no progress, gauge stale"


def test_requests_that_make_progress_are_never_cut_short():
    assert released(*(draining(at, tokens=at) for at in range(0, 600, 20)), until=600.0) == ""


def test_open_requests_without_progress_have_their_whole_time():
    assert released(*(draining(float(at), open_requests=2) for at in range(0, 100, 5)), until=100.0) == ""


def test_memory_that_is_still_listed_is_not_released():
    listed = GpuSample(
        at=6.0, node="n1", gpu=uuid(0), readings=Readings(), processes=(GpuProcess(pid=5, used_bytes=2**30),)
    )
    assert released(draining(0.0, open_requests=0), listed, until=60.0) == ""
