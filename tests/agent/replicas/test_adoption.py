import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from agent.judge import Judge
from agent.replicas import identity
from agent.replicas.identity import Identity
from agent.replicas.launch import Launch, spawn_detached
from agent.replicas.record import Folder, ReplicaRecord, marks
from tests.agent.replicas.node import ROOT, Node, ready, spec, stream, until
from vocab.messages import EventItem, ReplicaSpec

BOOT = identity.boot_id()


@asynccontextmanager
async def agent(node: Node, *specs: ReplicaSpec, step: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that supervises this node's run folder."""
    words = (str(node.run_dir), str(node.base_port), msgspec.json.encode(specs).decode(), step)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent.replicas.host", *words, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def recorded(node: Node, replica: str) -> ReplicaRecord:
    return await until(Folder(node.run_dir, replica).recorded, f"record of {replica}")


async def serving(node: Node, replica: str) -> ReplicaRecord:
    record = await recorded(node, replica)
    await until(Folder(node.run_dir, replica).beat.exists, f"beat of {replica}")
    return record


async def test_a_killed_agent_drops_no_stream_and_the_next_one_adopts_the_replica(node: Node) -> None:
    async with agent(node, spec("r1")) as first:
        record = await serving(node, "r1")
        async with stream(record.url, tokens=300) as response:
            first.kill()
            await first.wait()
            assert node.supervisor.adopt() == ("r1",)
            await node.up(spec("r1"))
            rest = await response.read()
    assert rest.endswith(b"data: [DONE]\n\n")
    assert node.status("r1").pid == record.pid
    assert node.status("r1").attempt == 1


async def test_an_adopted_replica_drains_and_its_exit_code_is_unseen(node: Node) -> None:
    async with agent(node, spec("r1")):
        await serving(node, "r1")
    node.supervisor.adopt()
    await node.up(spec("r1"))
    node.supervisor.converge([spec("r1", phase="drain")])
    stopped = await node.phase("r1", "stopped")
    assert stopped.exit is not None
    assert (stopped.exit.code, stopped.exit.reason) == (None, "asked")


async def test_replicas_that_left_for_a_boot_while_their_agent_was_killed_are_no_deaths(node: Node) -> None:
    """Its judge may never have heard that they drained: the end itself says that it was ordered."""
    async with agent(node, spec("r1")):
        record = await serving(node, "r1")
    rewritten(node, drain_at=record.began)
    identity.send(record.identity, signal.SIGTERM, BOOT)
    await until(lambda: not identity.alive(record.identity, BOOT), "r1 ended")
    assert node.supervisor.adopt() == ()
    [end] = node.supervisor.observations(1.0)
    died = [item for item in Judge("n1").observe(end, 1.0) if isinstance(item, EventItem)]
    assert died == []


async def test_an_agent_killed_between_spawn_and_record_leaves_nothing_lost(node: Node) -> None:
    async with agent(node, spec("r1"), step="before-record") as first:
        assert await first.wait() == -signal.SIGKILL
    assert Folder(node.run_dir, "r1").recorded() is None
    assert node.supervisor.adopt() == ("r1",)
    await node.up(spec("r1"))
    record = await recorded(node, "r1")
    assert record.pid == node.status("r1").pid
    assert identity.find(marks("r1", Folder(node.run_dir, "r1").beat), BOOT) == record.identity


async def test_an_agent_that_knows_nothing_keeps_everything_running(node: Node) -> None:
    async with agent(node, spec("r1")):
        record = await serving(node, "r1")
    node.supervisor.adopt()
    node.run()
    await node.phase("r1", "ready")
    assert identity.alive(record.identity, BOOT)
    node.supervisor.converge([])
    await until(lambda: not identity.alive(record.identity, BOOT), "r1 ended")


async def test_a_replica_that_died_while_no_agent_was_there_is_reported_and_restarted(node: Node) -> None:
    async with agent(node, spec("r1")):
        record = await serving(node, "r1")
    identity.send(record.identity, signal.SIGKILL, BOOT)
    await until(lambda: not identity.alive(record.identity, BOOT), "r1 dead")
    assert node.supervisor.adopt() == ()
    (end,) = node.supervisor.observations(1.0)
    assert end.exit is not None
    assert end.exit.reason == "exit unseen"
    await node.up(spec("r1"))
    assert node.status("r1").attempt == 2


def rewritten(node: Node, **changes: object) -> ReplicaRecord:
    folder = Folder(node.run_dir, "r1")
    record = folder.recorded()
    assert record is not None
    record = msgspec.structs.replace(record, **changes)
    folder.record(record)
    return record


async def bystander() -> asyncio.subprocess.Process:
    """A process that has nothing to do with us, leading a session as a replica does."""
    return await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)


async def test_a_pid_that_is_used_again_is_never_signalled(node: Node) -> None:
    async with agent(node, spec("r1")):
        record = await serving(node, "r1")
    identity.send(record.identity, signal.SIGKILL, BOOT)
    stranger = await bystander()
    try:
        rewritten(node, pid=stranger.pid)
        node.supervisor.adopt()
        node.run()
        node.supervisor.converge([spec("r1", phase="stop", drain_s=0.0, kill_s=0.0)])
        await node.phase("r1", "stopped")
        node.supervisor.converge([])
        await until(lambda: not node.supervisor.statuses(), "r1 forgotten")
        assert stranger.returncode is None
        assert identity.stat(stranger.pid) is not None
    finally:
        stranger.kill()
        await stranger.wait()


async def test_records_of_an_earlier_boot_are_forgotten_and_nothing_is_signalled(node: Node) -> None:
    async with agent(node, spec("r1")):
        record = await serving(node, "r1")
    rewritten(node, boot_id="00000000-0000-0000-0000-000000000000")
    assert node.supervisor.adopt() == ()
    assert node.supervisor.statuses() == ()
    assert Folder(node.run_dir, "r1").recorded() is None
    assert identity.alive(record.identity, BOOT)


async def test_a_record_that_cannot_be_read_names_no_process(node: Node) -> None:
    async with agent(node, spec("r1")):
        await serving(node, "r1")
    (Folder(node.run_dir, "r1").path / "record.json").write_bytes(b'{"replica": "r1", "pid"')
    assert node.supervisor.adopt() == ()


async def test_a_fence_that_is_told_again_before_the_first_converge_is_never_lifted(node: Node) -> None:
    async with agent(node, spec("r1", "GPU-1")):
        record = await serving(node, "r1")
    node.supervisor.adopt()
    node.supervisor.fence("GPU-1")
    await node.up(spec("r1", "GPU-1"))
    await until(lambda: not node.status("r1").admitting, "r1 fenced")
    await node.halt()
    node.make()
    node.supervisor.adopt()
    node.supervisor.fence("GPU-1")
    await node.up(spec("r1", "GPU-1"))
    await until(lambda: not node.status("r1").admitting, "r1 still fenced")
    assert await ready(record.url) == (503, "fenced")


async def test_a_signal_reaches_the_process_alone_that_was_meant() -> None:
    stranger = await bystander()
    try:
        seen = identity.stat(stranger.pid)
        assert seen is not None
        assert not identity.send(Identity(stranger.pid, seen.start_s + 1.0, BOOT), signal.SIGKILL, BOOT)
        assert not identity.send(Identity(stranger.pid, seen.start_s, "another boot"), signal.SIGKILL, BOOT)
        assert stranger.returncode is None
        assert identity.send(Identity(stranger.pid, seen.start_s, BOOT), signal.SIGKILL, BOOT)
        assert await stranger.wait() == -signal.SIGKILL
    finally:
        if stranger.returncode is None:
            stranger.kill()


def test_a_zombie_has_ended() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    seen = identity.stat(pid)
    assert seen is not None
    assert seen.state == "Z"
    assert not identity.alive(Identity(pid, seen.start_s, BOOT), BOOT)
    os.waitpid(pid, 0)


async def test_workers_that_a_killed_server_left_behind_are_ended_before_the_restart(node: Node) -> None:
    def spawn(launch: Launch) -> int:
        """Start it with a worker in its session, as an engine of several processes has."""
        script = f"sleep 300 & exec {' '.join(launch.argv)}"
        return spawn_detached(msgspec.structs.replace(launch, argv=("sh", "-c", script)))

    node.make(spawn=spawn)
    await node.up(spec("r1"))
    first = node.supervisor.records()[0]
    workers = [pid for pid in identity.survivors(first.identity, first.mark, BOOT) if pid != first.pid]
    assert len(workers) == 1
    identity.send(first.identity, signal.SIGKILL, BOOT)
    await until(lambda: node.status("r1").pid not in {None, first.pid}, "r1 restarted")
    assert not identity.survivors(first.identity, first.mark, BOOT)
