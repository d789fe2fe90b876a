"""A supervisor whose replicas are units: it can neither start, signal nor reap them by itself."""

import asyncio
import contextlib
import os
import signal
import stat

import aiohttp
import pytest

from agent.replicas import identity
from agent.replicas.adoption import take_over
from agent.replicas.cgroup import belongs, leader, processes
from agent.replicas.record import Folder, unit_of
from agent.replicas.units import Last
from agent.roothelper.requests import ReplicaRun, Slice
from agent.units import last_of, request_of
from tests.agent.replicas.node import Node, post, spec, stream, until
from tests.agent.replicas.units import ProcessUnits
from vocab.events import Mig
from vocab.observations import Exit, Member


@pytest.fixture
async def units(node):
    made = ProcessUnits(node.run_dir)
    node.make(units=made, group=os.getgid(), cpu=False)
    yield made
    await node.halt()
    made.sweep()


def anew(node: Node, units: ProcessUnits) -> None:
    """The next agent."""
    node.make(units=units, group=os.getgid(), cpu=False)


async def test_it_is_started_and_drained_and_its_end_is_told(node, units):
    await node.up(spec("r1"))
    record = node.supervisor.records()[0]
    assert record.unit == "corral-replica-r1.service"
    assert record.pid == units.processes["r1"].pid
    beat = Folder(node.run_dir, "r1").beat.stat()
    assert (stat.S_IMODE(beat.st_mode), beat.st_gid) == (0o660, os.getgid())
    async with stream(record.url, 40):
        node.supervisor.converge([spec("r1", phase="drain")])
        await node.phase("r1", "draining")
    ended = await node.phase("r1", "stopped")
    assert ended.exit == Exit(code=0, reason="drained")
    assert units.did == ["start r1"], "its door was told, and nobody had to signal it"
    node.supervisor.converge([])
    await until(lambda: "clear r1" in units.did, "forgotten")


async def test_a_crash_has_its_code_and_last_words_and_is_started_again(node, units):
    await node.up(spec("r1"))
    first = node.status("r1")
    await post(first.url or "", "/control", fail="exit")
    with contextlib.suppress(aiohttp.ClientError):
        await post(first.url or "", "/v1/completions", model="chat")
    await until(lambda: node.status("r1").attempt == 2, "started again")
    seen = [each for each in node.supervisor.observations(0.0) if getattr(each, "exit", None) is not None]
    assert seen[0].exit == Exit(code=1, reason="crashed", text="CUDA error: out of memory")


async def test_the_kernels_kill_for_memory_is_told_as_what_it_is(node, units):
    await node.up(spec("r1"))
    units.ended["r1"] = last_of(ReplicaRun(known=True, result="oom-kill", code=0, log="Killed\n"))
    os.kill(units.processes["r1"].pid, signal.SIGKILL)
    await until(lambda: node.status("r1").attempt == 2, "started again")
    [seen] = [each for each in node.supervisor.observations(0.0) if getattr(each, "exit", None) is not None]
    assert (seen.exit.signal, seen.exit.code, seen.exit.reason) == (9, None, "crashed")
    assert "for memory" in seen.exit.text


async def test_a_restart_by_order_ends_it_and_starts_it_anew_at_once(node, units):
    await node.up(spec("r1", kill_s=20.0))
    first = node.status("r1").pid
    assert node.supervisor.restart("r1")
    await until(lambda: (status := node.status("r1")).phase == "ready" and status.pid not in {None, first}, "anew")
    assert units.did == ["start r1", "end r1", "start r1"]


async def test_one_that_does_not_drain_gets_sigterm_and_then_sigkill(node, units):
    units.flags = ("--deaf",)
    await node.up(spec("r1", drain_s=0.1, kill_s=0.1))
    node.supervisor.converge([spec("r1", phase="stop", drain_s=0.1, kill_s=0.1)])
    ended = await node.phase("r1", "stopped")
    assert units.did == ["start r1", "end r1", "kill r1"]
    assert ended.exit == Exit(signal=9, reason="killed")


async def test_a_start_that_is_refused_says_why_and_counts_as_a_try(node, units):
    units.refusal = "the root helper: model: '/etc' does not lie where models may lie here"
    node.supervisor.converge([spec("r1")])
    node.run()
    status = await until(lambda: node.status("r1").exit and node.status("r1"), "refused")
    assert status.exit.reason == "cannot start"
    assert "where models may lie" in status.exit.text


async def test_while_one_is_being_started_nothing_else_is_done_with_it(node, units):
    units.gate = asyncio.Event()
    node.supervisor.converge([spec("r1"), spec("r2")])
    node.run()
    await until(lambda: len(list((node.run_dir / "replicas").glob("*/intent.json"))) == 2, "both under way")
    node.supervisor.converge([spec("r2")])
    await asyncio.sleep(0)
    units.gate.set()
    await node.phase("r2", "ready")
    await until(lambda: "clear r1" in units.did, "the other was ended")
    assert units.did.count("start r1") == 1
    assert units.did.count("start r2") == 1


async def test_two_that_are_started_at_once_have_two_ports(node, units):
    await node.up(spec("r1"), spec("r2"), spec("r3"))
    assert len({node.status(name).url for name in ("r1", "r2", "r3")}) == 3


async def test_a_new_agent_adopts_a_unit_and_learns_of_an_end_that_came_between(node, units):
    await node.up(spec("r1"), spec("r2"))
    pid = units.processes["r1"].pid
    await node.halt()
    units.processes["r2"].kill()
    await until(lambda: units.processes["r2"].poll() is not None, "dead")
    anew(node, units)
    node.supervisor.adopt()
    node.supervisor.converge([spec("r1"), spec("r2")])
    node.run()
    await node.phase("r1", "ready")
    assert node.status("r1").pid == pid
    await until(lambda: node.status("r2").attempt == 2, "started again")
    [seen] = [each for each in node.supervisor.observations(0.0) if getattr(each, "exit", None) is not None]
    assert seen.exit.signal == 9


async def test_how_it_ended_is_unseen_where_nobody_can_tell_any_more(node, units):
    await node.up(spec("r1"))
    units.ended["r1"] = last_of(ReplicaRun(known=False))
    units.processes["r1"].kill()
    node.supervisor.converge([])
    await until(lambda: not node.supervisor.records(), "ended")
    assert Folder(node.run_dir, "r1").recorded() is None


async def test_a_helper_that_does_not_answer_is_asked_again(node, units):
    await node.up(spec("r1"))
    units.gone = True
    units.processes["r1"].kill()
    await until(lambda: node.supervisor._replicas["r1"].awaits_word, "gone")
    assert node.status("r1").exit is None
    units.gone = False
    await until(lambda: node.status("r1").attempt == 2, "started again")


async def test_what_it_sees_of_its_gpus_is_what_it_was_given(node, units):
    await node.up(spec("r1", "GPU-1", "GPU-2"))
    [seen] = node.supervisor.observations(0.0)
    assert seen.visible == "GPU-1,GPU-2"


async def test_a_unit_of_an_earlier_boot_is_forgotten(node, units):
    await node.up(spec("r1"))
    await node.halt()
    assert take_over(Folder(node.run_dir, "r1"), "another boot", 0.0) is None


def test_a_process_belongs_to_a_unit_below_slices_alone(tmp_path):
    lines = {
        1: "0::/system.slice/corral-replica-r1.service",
        2: "0::/system.slice/corral-replica-r1.service/workers",
        3: "2:cpu:/\n1:name=systemd:/system.slice/corral-replica-r1.service",
        4: "0::/user.slice/user@9.service/app.slice/corral-replica-r1.service",
        5: "0::/system.slice/docker-ab.scope/system.slice/corral-replica-r1.service",
        6: "0::/system.slice/corral-replica-r10.service",
    }
    for pid, text in lines.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(text + "\n")
    assert [pid for pid in lines if belongs(pid, unit_of("r1"), tmp_path)] == [1, 2, 3]
    assert not belongs(7, unit_of("r1"), tmp_path)


def test_a_unit_that_is_not_there_has_no_processes():
    assert processes("corral-replica-none.service") == ()
    assert leader("corral-replica-none.service", identity.boot_id()) is None


async def test_what_the_helper_is_asked_for_is_what_the_order_says(node, units):
    options = {"max_running": 4, "none": None}
    await node.up(spec("r1", "GPU-1", options=options))
    record = node.supervisor.records()[0]
    request = request_of(record)
    assert (request.gpus, request.slices, request.port) == (("GPU-1",), (), record.port)
    assert request.options == {"max_running": 4}


def test_a_part_of_a_gpu_is_asked_for_by_its_instances(tmp_path):
    from agent.replicas.record import ReplicaRecord

    members = (Member(node="n1", gpu="GPU-1", mig=Mig(2, 0)),)
    made = spec("r1")
    record = ReplicaRecord(
        replica="r1", deployment="chat", members=members, pid=None, start_s=None, boot_id="b", port=1, url="",
        token="1.1", attempt=1, spec=type(made)(**{**{f: getattr(made, f) for f in made.__struct_fields__},
        "members": members}), began=0.0,
    )  # fmt: skip
    assert request_of(record).slices == (Slice("GPU-1", 2, 0),)


@pytest.mark.parametrize(
    ("run", "last"),
    [
        (ReplicaRun(known=False), Last(Exit(), "")),
        (ReplicaRun(known=True, runs=True, pid=7), None),
        (ReplicaRun(known=True, pid=7, code=0, log="x"), Last(Exit(code=0), "x")),
        (ReplicaRun(known=True, runs=True, pid=7, signal=11), Last(Exit(signal=11), "")),
        (ReplicaRun(known=True, result="timeout"), Last(Exit(), "")),
    ],
)
def test_how_a_unit_ended_in_the_words_of_the_wire(run, last):
    assert last_of(run) == last
