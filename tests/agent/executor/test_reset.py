"""A reset with its disruption set, on a virtual node with real files: who is in the way, and what comes back."""

import os
import subprocess
import sys

import msgspec
import pytest

from agent.executor.journal import Step
from agent.roothelper.requests import FABRIC_MANAGER, Failed, ResetGpus, StartService, StopService, Survey
from agent.roothelper.virtual import SERVICES
from agent.virtual.faults import Fault, apply
from agent.virtual.state import VirtualState
from tests.agent.executor.conftest import running, until
from tests.agent.executor.node import Node, kinds, reset_of
from vocab.states import ActionState


async def carried_out(node: Node, **changes):
    order = reset_of(node, **changes)
    async with running(node):
        node.executor.take([order])
        await until(node.ended)
        await until(lambda: not any(entry.step is not Step.RESTORING for entry in node.journal.unfinished()))
    return node.ended()


def put(state: VirtualState, slot: int, pid: int) -> None:
    gpu = state.gpus[slot]
    gpu.processes[0].pid, gpu.process_count = pid, 1


async def test_a_reset_stops_services_in_order_resets_and_brings_them_back_in_reverse(node):
    apply(node.state, Fault(kind="remap"))
    assert (await carried_out(node))[1] is ActionState.DONE
    assert node.state.gpus[0].remap_pending == 0
    assert node.services() == SERVICES
    harmful = [request for request in node.helper.asked if not isinstance(request, Survey)]
    stops, starts = (
        [r.unit for r in harmful if isinstance(r, StopService)],
        [r.unit for r in harmful if isinstance(r, StartService)],
    )
    assert stops == list(SERVICES)
    assert starts == list(reversed(SERVICES))
    order = [each for each in kinds(harmful) if each != "Collect"]
    assert order == ["StopService"] * 3 + ["ResetGpus"] + ["StartService"] * 3
    assert node.around.events == ["let go", "was reset 1", "take up"]


async def test_it_is_running_before_it_is_done(node):
    await carried_out(node)
    assert [state for _, state, _ in node.told] == [ActionState.RUNNING, ActionState.DONE]


async def test_all_that_resets_together_is_reset_in_one_act(node):
    others = tuple(node.uuid(slot) for slot in (1, 2))
    assert (await carried_out(node, gpus=others))[1] is ActionState.DONE
    acts = [request for request in node.helper.asked if isinstance(request, ResetGpus)]
    assert acts == [ResetGpus(gpus=(node.uuid(0), *others))]


async def test_somebody_elses_process_on_any_gpu_of_the_set_is_named_and_nothing_is_touched(node):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as stranger:
        put(node.state, 1, stranger.pid)
        _, state, why = await carried_out(node, gpus=(node.uuid(1),))
        stranger.kill()
    assert state is ActionState.REFUSED
    assert f"pid {stranger.pid} (" in why
    assert "not ours" in why
    assert set(kinds(node.helper.asked)) == {"Survey"}
    assert node.around.events == []


async def test_a_replica_of_ours_is_in_the_way_too(node):
    put(node.state, 0, os.getppid())
    node.around.replicas = frozenset({os.getppid()})
    _, state, why = await carried_out(node)
    assert state is ActionState.REFUSED
    assert "a replica still runs there" in why


async def test_a_process_that_appears_after_the_services_have_stopped_ends_it_and_they_come_back(node):
    def appear(request):
        if isinstance(request, StopService) and request.unit == SERVICES[-1]:
            put(node.state, 0, os.getppid())

    node.helper.after = appear
    _, state, why = await carried_out(node)
    assert state is ActionState.REFUSED
    assert f"pid {os.getppid()}" in why
    assert node.services() == SERVICES
    assert "ResetGpus" not in kinds(node.helper.asked)


async def test_only_services_that_ran_are_stopped_and_started(node):
    node.machine.stop(SERVICES[1])
    await carried_out(node)
    assert node.services() == (SERVICES[0], SERVICES[2])


async def test_a_service_that_cannot_be_stopped_ends_it_and_the_others_come_back(node):
    node.helper.instead[StopService] = Failed(why="it hangs")
    _, state, why = await carried_out(node)
    assert state is ActionState.REFUSED
    assert "it hangs" in why
    assert node.services() == SERVICES


async def test_a_reset_that_fails_brings_everything_back(node):
    apply(node.state, Fault(kind="xid", code=79))
    _, state, why = await carried_out(node)
    assert state is ActionState.FAILED
    assert "reboot the node" in why
    assert node.services() == SERVICES


async def test_a_reset_that_was_cut_off_is_unknown_and_not_done(node):
    node.helper.instead[ResetGpus] = Failed(why="it did not end", unseen=True)
    _, state, _ = await carried_out(node)
    assert state is ActionState.TIMED_OUT
    assert "was reset 1" not in node.around.events
    assert node.services() == SERVICES


async def test_a_service_that_does_not_start_again_is_on_disk_until_it_does(node):
    node.helper.instead[StartService] = Failed(why="no")
    _, state, _ = await carried_out(node)
    assert state is ActionState.DONE
    [entry] = node.journal.unfinished()
    assert (entry.step, entry.stopped) == (Step.RESTORING, SERVICES)
    again = Node(node.folder)
    async with running(again):
        await until(lambda: not again.journal.unfinished())
    assert again.services() == SERVICES
    again.close()


@pytest.fixture
def fabric(tmp_path):
    """A node whose fabric manager runs and has every GPU open."""
    made = Node(tmp_path, services=(*SERVICES, FABRIC_MANAGER))
    made.machine.start(FABRIC_MANAGER)
    yield made
    made.close()


async def test_fabric_manager_is_stopped_where_the_reset_takes_every_gpu(fabric):
    others = tuple(fabric.uuid(slot) for slot in range(1, 8))
    assert (await carried_out(fabric, gpus=others))[1] is ActionState.DONE
    stops = [request.unit for request in fabric.helper.asked if isinstance(request, StopService)]
    assert stops == [*SERVICES, FABRIC_MANAGER]
    assert fabric.machine.is_active(FABRIC_MANAGER)


async def test_fabric_manager_stays_up_where_another_gpu_would_lose_its_fabric(fabric):
    assert (await carried_out(fabric))[1] is ActionState.DONE
    assert StopService(unit=FABRIC_MANAGER) not in fabric.helper.asked
    assert fabric.services() == SERVICES


async def test_evidence_is_on_disk_before_the_reset(node):
    found = []

    def look(request):
        if isinstance(request, ResetGpus):
            found.extend(path.name for path in (node.folder / "evidence" / "a-1").iterdir())

    node.helper.before = look
    await carried_out(node)
    assert sorted(found) == ["kernel.log", "nvidia-bug-report.missing.txt", "readings.json"]
    assert "Collect" in kinds(node.helper.asked)


async def test_evidence_that_cannot_be_kept_does_not_stop_a_repair(node):
    (node.folder / "evidence").write_text("a file in the way")
    assert (await carried_out(node))[1] is ActionState.DONE


async def test_the_pause_file_between_two_steps_stops_a_reset_and_brings_everything_back(node):
    node.helper.after = lambda request: node.pause.touch() if isinstance(request, StopService) else None
    _, state, why = await carried_out(node)
    assert state is ActionState.FAILED
    assert "pause" in why
    assert "ResetGpus" not in kinds(node.helper.asked)
    assert node.services() == SERVICES


async def test_an_order_that_is_taken_back_on_the_way_is_not_carried_out(node):
    node.helper.after = lambda request: node.executor.take([]) if isinstance(request, StopService) else None
    _, state, why = await carried_out(node)
    assert state is ActionState.FAILED
    assert "taken back" in why
    assert "ResetGpus" not in kinds(node.helper.asked)


async def test_without_a_helper_it_is_refused_honestly(node):
    node.helper.gone = True
    _, state, why = await carried_out(node)
    assert state is ActionState.REFUSED
    assert "no means for reset_gpu" in why
    assert node.learnt == ()


@pytest.mark.parametrize("slot", [0, 7])
async def test_what_was_begun_is_in_the_journal_with_its_outcome(node, slot):
    order = reset_of(node, slot)
    async with running(node):
        node.executor.take([order])
        await until(node.ended)
        await until(lambda: not node.journal.unfinished())
    entry = node.journal.find(order)
    assert entry is not None
    assert (entry.step, entry.state, entry.stopped) == (Step.ENDED, ActionState.DONE, ())
    assert msgspec.json.decode((node.folder / "repairs.json").read_bytes())["newest"] == [1, 7]
