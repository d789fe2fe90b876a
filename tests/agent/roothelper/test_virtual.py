"""The verbs on a virtual node: the silicon, its made-up services, and the process that serves them."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.replicas.identity import boot_id, stat
from agent.replicas.record import Folder, ReplicaRecord
from agent.roothelper.client import ChildHelper
from agent.roothelper.requests import OWN_UNIT, Denied, Done, Failed, Reboot, ResetGpus, StopService, Survey, Surveyed
from agent.roothelper.virtual import SERVICES, Services, VirtualMachine, services_file
from agent.virtual.faults import Fault, apply
from agent.virtual.state import VirtualState
from vocab.messages import ReplicaSpec


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a")


@pytest.fixture
def machine(state: VirtualState) -> Iterator[VirtualMachine]:
    machine = VirtualMachine(state.path)
    yield machine
    machine.close()


def uuids(state: VirtualState) -> tuple[str, ...]:
    return tuple(gpu.uuid.decode() for gpu in state.gpus)


def put(state: VirtualState, slot: int, pid: int) -> None:
    gpu = state.gpus[slot]
    gpu.processes[0].pid, gpu.process_count = pid, 1


def replica(run_dir: Path, process: "subprocess.Popen[bytes]") -> Folder:
    folder = Folder(run_dir, "r1")
    folder.make()
    seen = stat(process.pid)
    assert seen is not None
    spec = ReplicaSpec(replica="r1", deployment="chat", members=(), model="m")
    folder.record(
        ReplicaRecord(
            replica="r1", deployment="chat", members=(), pid=process.pid, start_s=seen.start_s, boot_id=boot_id(),
            port=1, url="", token="", attempt=1, spec=spec, began=0.0,
        )
    )  # fmt: skip
    return folder


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_service_that_runs_keeps_a_gpu_open_and_one_that_was_stopped_does_not(state, machine):
    gpu = uuids(state)[:1]
    assert [each.unit for each in machine.holders(gpu)] == list(SERVICES)
    for unit in SERVICES:
        assert machine.stop(unit) == Done()
    assert machine.holders(gpu) == ()
    machine.start(SERVICES[0])
    assert [each.unit for each in machine.holders(gpu)] == [SERVICES[0]]


def test_a_process_on_a_gpu_is_named_and_one_that_is_gone_is_not(state, machine, sleeper):
    put(state, 0, sleeper.pid)
    put(state, 1, 2**22 + 1)
    named = [each for each in machine.holders(uuids(state)) if each.pid]
    assert [(each.pid, each.gpus, each.unit) for each in named] == [(sleeper.pid, uuids(state)[:1], None)]
    assert isinstance(machine.reset(uuids(state)[:1]), Failed)


def test_a_reset_does_to_the_silicon_what_a_reset_does(state, machine):
    apply(state, Fault(kind="remap"))
    apply(state, Fault(kind="ecc", count=3))
    assert machine.reset(uuids(state)[:1]) == Done()
    gpu = state.gpus[0]
    assert (gpu.remap_pending, gpu.ecc_dram_uncorrected, gpu.remap_uncorrectable) == (0, 0, 1)


def test_a_reset_does_not_reach_a_lost_gpu(state, machine):
    apply(state, Fault(kind="xid", code=79))
    reply = machine.reset(uuids(state)[:1])
    assert isinstance(reply, Failed)
    assert "reboot the node" in reply.why


def test_a_reboot_ends_replicas_forgets_them_and_gives_a_new_boot_id(state, machine, sleeper):
    folder = replica(state.path.parent, sleeper)
    put(state, 2, sleeper.pid)
    assert [each.unit for each in machine.holders((uuids(state)[2],)) if each.pid] == [OWN_UNIT]
    apply(state, Fault(kind="xid", code=79))
    machine.stop(SERVICES[0])
    before = state.boot_id
    assert machine.reboot() == Done()
    assert state.boot_id != before
    assert sleeper.wait(timeout=60) != 0
    assert folder.recorded() is None
    assert state.gpus[0].lost == 0
    assert machine.is_active(SERVICES[0])


async def test_a_child_serves_the_node_and_ends_with_its_caller(state, tmp_path):
    helper = ChildHelper(state.path, tmp_path / "PAUSE")
    try:
        survey = await helper.ask(Survey(gpus=uuids(state)[:1]))
        assert isinstance(survey, Surveyed)
        assert survey.running == SERVICES
        assert isinstance(await helper.ask(ResetGpus(gpus=uuids(state)[:1])), Denied)
        for unit in SERVICES:
            assert await helper.ask(StopService(unit=unit)) == Done()
        assert await helper.ask(ResetGpus(gpus=uuids(state)[:1])) == Done()
        services_file(state.path).write_bytes(b'{"users": ["anna"]}')
        refused = await helper.ask(Reboot())
        assert isinstance(refused, Denied)
        assert "anna is logged in" in refused.why
        child = helper._child
        assert child is not None
    finally:
        await helper.close()
    assert child.returncode is not None


async def test_two_callers_at_once_are_served_one_after_the_other(state, tmp_path):
    helper = ChildHelper(state.path, tmp_path / "PAUSE")
    try:
        await helper.ask(Survey(gpus=()))
        replies = await asyncio.gather(*(helper.ask(StopService(unit=unit)) for unit in SERVICES))
    finally:
        await helper.close()
    assert replies == [Done()] * len(SERVICES)


def test_a_new_virtual_node_runs_every_service_and_has_nobody_logged_in():
    assert Services() == Services(active=list(SERVICES), users=[], inhibitors=[])
    assert os.getpid() > 1
