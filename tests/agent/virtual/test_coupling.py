"""What beats of a replica become on its virtual GPUs."""

from agent.virtual.boards import H100
from agent.virtual.coupling import CONTEXT_BYTES, activity, together
from agent.virtual.physics import Load
from vocab.beat import Beat

READY = Beat(pid=7, ready=True, step=100, tokens=400, running=4)
STEPPED = Beat(pid=7, ready=True, step=120, tokens=480, running=4)


def test_a_stepping_replica_is_busy_by_time_and_half_idle_by_silicon() -> None:
    load = activity(READY, STEPPED, 1, H100, 1.0).load
    assert load.utilization > 0.9
    assert 0.2 < load.sm_active < 0.5
    assert load.dram > load.sm_active


def test_a_bigger_batch_works_more_of_the_chip() -> None:
    one = activity(READY, Beat(pid=7, ready=True, step=120, tokens=420), 1, H100, 1.0).load
    many = activity(READY, Beat(pid=7, ready=True, step=120, tokens=720), 1, H100, 1.0).load
    assert many.sm_active > one.sm_active
    assert many.tensor > one.tensor


def test_requests_without_steps_are_not_work() -> None:
    assert activity(STEPPED, STEPPED, 1, H100, 1.0).load == Load(contexts=1)


def test_a_loading_replica_holds_a_context_and_a_ready_one_its_share() -> None:
    assert activity(None, None, 1, H100, 1.0).used_bytes == CONTEXT_BYTES
    assert activity(None, Beat(pid=7), 1, H100, 1.0).used_bytes == CONTEXT_BYTES
    ready = activity(None, READY, 1, H100, 1.0)
    assert 0.85 < ready.used_bytes / H100.memory_total_bytes < 0.9


def test_a_replica_that_was_started_anew_is_not_credited_with_its_predecessors_steps() -> None:
    assert activity(READY, Beat(pid=8, ready=True, step=120), 1, H100, 1.0).load == Load(contexts=1)


def test_only_a_group_uses_the_links() -> None:
    assert activity(READY, STEPPED, 1, H100, 1.0).load.links_kib_per_s == 0
    assert activity(READY, STEPPED, 2, H100, 1.0).load.links_kib_per_s > 0


def test_replicas_that_share_a_gpu_do_not_exceed_it() -> None:
    load = activity(READY, STEPPED, 1, H100, 1.0).load
    shared = together([load] * 5)
    assert shared.utilization == shared.sm_active == 1.0
    assert shared.contexts == 5
