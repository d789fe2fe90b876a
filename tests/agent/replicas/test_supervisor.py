import os
import signal

import pytest

from agent.replicas import identity
from agent.replicas.plan import RESTARTS
from tests.agent.replicas.node import Node, environment, post, ready, spec, stream, until, with_flags
from vocab.observations import ReplicaSeen


async def test_starts_what_is_desired_and_says_where(node: Node) -> None:
    await node.up(spec("r1"), spec("r2"))
    one, two = node.supervisor.statuses()
    assert one.ready
    assert one.admitting
    assert one.url != two.url
    assert await ready(one.url) == (200, "")
    assert one.pid is not None
    assert os.getsid(one.pid) == one.pid  # a session of its own: Ctrl-C and the agent's end do not reach it
    assert os.getpriority(os.PRIO_PROCESS, one.pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)


async def test_a_process_sees_no_gpu_of_the_machine_on_a_virtual_node(node: Node) -> None:
    await node.up(spec("r1", "GPU-1"))
    assert {b"CUDA_VISIBLE_DEVICES=", b"OMP_NUM_THREADS=1"} <= set(environment(node.status("r1").pid))


async def test_a_fence_stops_admission_and_lifting_it_restores_it(node: Node) -> None:
    await node.up(spec("r1", "GPU-1", "GPU-2"), spec("r2", "GPU-3"))
    node.supervisor.fence("GPU-2")
    await until(lambda: not node.status("r1").admitting, "r1 fenced")
    assert await ready(node.status("r1").url) == (503, "fenced")
    assert await ready(node.status("r2").url) == (200, "")
    node.supervisor.unfence("GPU-2")
    await until(lambda: node.status("r1").admitting, "r1 admits")
    assert await ready(node.status("r1").url) == (200, "")


async def test_a_fence_reaches_a_replica_that_still_loads(node: Node) -> None:
    node.make(spawn=with_flags("--load-s", "0.3"))
    node.supervisor.converge([spec("r1", "GPU-1")])
    node.run()
    await until(lambda: node.status("r1").pid, "r1 started")
    node.supervisor.fence("GPU-1")
    await node.phase("r1", "ready")
    await until(lambda: not node.status("r1").admitting, "r1 fenced")


async def test_nothing_starts_on_a_fenced_gpu(node: Node) -> None:
    node.supervisor.fence("GPU-1")
    await node.up(spec("r2", "GPU-2"))
    node.supervisor.converge([spec("r2", "GPU-2"), spec("r1", "GPU-1")])
    await post(node.status("r2").url, "/control")  # some turns of the loop go by
    assert node.status("r1").pid is None
    node.supervisor.unfence("GPU-1")
    await node.phase("r1", "ready")


async def test_a_drain_lets_open_streams_end_and_then_the_process_exits(node: Node) -> None:
    await node.up(spec("r1"))
    url = node.status("r1").url
    async with stream(url, tokens=200) as response:
        node.supervisor.converge([spec("r1", phase="drain", token="1.2")])
        await node.phase("r1", "draining")
        await until(lambda: not node.status("r1").admitting, "r1 closed")
        status, body = await post(url, "/v1/chat/completions", model="chat")
        assert (status, body["error"]["code"]) == (503, "draining")
        rest = await response.read()
    assert rest.endswith(b"data: [DONE]\n\n")
    stopped = await node.phase("r1", "stopped")
    assert stopped.exit is not None
    assert (stopped.exit.code, stopped.exit.reason) == (0, "drained")
    assert stopped.token == "1.2"
    assert stopped.open_requests == 0


async def test_at_its_deadline_a_drain_cuts_off(node: Node) -> None:
    await node.up(spec("r1"))
    async with stream(node.status("r1").url, tokens=100_000):
        node.supervisor.converge([spec("r1", phase="stop", drain_s=0.3)])
        stopped = await node.phase("r1", "stopped")
    assert stopped.exit is not None
    assert (stopped.exit.code, stopped.exit.reason) == (3, "cut off")


async def test_a_replica_that_obeys_nothing_is_killed_after_its_time(node: Node) -> None:
    node.make(spawn=with_flags("--deaf"))
    await node.up(spec("r1"))
    node.supervisor.converge([spec("r1", phase="drain", drain_s=0.1, kill_s=0.1)])
    stopped = await node.phase("r1", "stopped")
    assert stopped.exit is not None
    assert (stopped.exit.signal, stopped.exit.reason) == (signal.SIGKILL, "killed")


async def test_what_is_no_longer_named_is_drained_and_forgotten(node: Node) -> None:
    await node.up(spec("r1"), spec("r2"))
    pid = node.status("r1").pid
    node.supervisor.converge([spec("r2")])
    await until(lambda: len(node.supervisor.statuses()) == 1, "r1 forgotten")
    assert identity.stat(pid or 0) is None
    assert node.status("r2").ready


async def test_a_crash_is_reported_once_and_the_replica_comes_back_on_its_port(node: Node) -> None:
    await node.up(spec("r1"))
    before = node.status("r1")
    os.kill(before.pid or 0, signal.SIGKILL)
    await until(lambda: node.status("r1").pid not in {None, before.pid}, "r1 restarted")
    after = await node.phase("r1", "ready")
    assert (after.url, after.attempt) == (before.url, 2)
    ends = [seen for seen in node.supervisor.observations(1.0) if seen.exit is not None]
    assert [(end.replica, end.exit and end.exit.signal, end.phase) for end in ends] == [("r1", 9, "stopped")]
    assert not [seen for seen in node.supervisor.observations(2.0) if seen.exit is not None]


async def test_a_crash_on_a_fenced_gpu_is_not_restarted(node: Node) -> None:
    await node.up(spec("r1", "GPU-1"))
    node.supervisor.fence("GPU-1")
    os.kill(node.status("r1").pid or 0, signal.SIGKILL)
    stopped = await node.phase("r1", "stopped")
    assert stopped.exit is not None
    assert stopped.exit.reason == "crashed"


@pytest.mark.parametrize("code", [1])
async def test_a_crash_loop_ends_after_its_budget_and_a_new_token_tries_again(node: Node, code: int) -> None:
    node.make(spawn=with_flags("--exit-code", str(code)))
    node.supervisor.converge([spec("r1")])
    node.run()
    stopped = await node.phase("r1", "stopped")
    assert stopped.exit is not None
    assert (stopped.exit.code, stopped.exit.reason) == (code, "crash_loop")
    assert stopped.exit.text == f"fake-replica: ends with {code} as told"
    assert stopped.attempt == 1 + RESTARTS
    node.supervisor.converge([spec("r1", token="1.2")])
    assert node.status("r1").phase == "starting"


async def test_a_program_that_is_not_there_is_named(node: Node) -> None:
    node.make(program=("/nonexistent/engine",))
    node.supervisor.converge([spec("r1")])
    node.run()
    exit_ = await until(lambda: node.status("r1").exit, "r1 ended")
    assert "/nonexistent/engine" in (exit_.text or "")


async def test_an_engine_that_the_agent_cannot_start_is_refused_at_once(node: Node) -> None:
    node.supervisor.converge([spec("r1", engine="warp")])
    node.run()
    stopped = await node.phase("r1", "stopped")
    assert stopped.exit is not None
    assert "'warp'" in (stopped.exit.text or "")


async def test_a_replica_that_stands_still_while_it_answers_is_not_called_dead(node: Node) -> None:
    await node.up(spec("r1"))
    await post(node.status("r1").url, "/control", ready=False)
    seen = next(each for each in node.supervisor.observations(5.0) if each.replica == "r1")
    assert seen.phase == "ready"
    assert seen.ready


async def test_a_restart_ends_the_whole_session_and_starts_anew_in_place(node: Node) -> None:
    await node.up(spec("r1"))
    before = node.status("r1")
    assert node.supervisor.restart("r1")
    after = await until(lambda: (s := node.status("r1")).pid not in {None, before.pid} and s.ready and s, "r1 again")
    assert (after.members, after.url) == (before.members, before.url)
    assert not node.supervisor.restart("nobody")


async def test_a_restart_ends_an_engine_that_obeys_no_signal(node: Node) -> None:
    await node.up(spec("r1", kill_s=0.2))
    before = node.status("r1").pid
    assert before is not None
    os.kill(before, signal.SIGSTOP)
    assert node.supervisor.restart("r1")
    await until(lambda: node.status("r1").pid not in {None, before} and node.status("r1").ready, "r1 again")


async def test_the_judge_is_told_what_the_engine_tells_of_itself(node: Node) -> None:
    await node.up(spec("r1", "GPU-1"))

    def look() -> ReplicaSeen | None:
        looks = [seen for seen in node.supervisor.observations(0.0) if isinstance(seen, ReplicaSeen)]
        return next((seen for seen in looks if seen.health is not None and seen.step is not None), None)

    seen = await until(look, "a look with an answer of its door")
    assert (seen.health, seen.visible, seen.pids[0]) == (200, "", node.status("r1").pid)
    assert seen.running == 0


async def test_an_answer_of_the_door_is_told_once(node: Node) -> None:
    await node.up(spec("r1"))

    def healths() -> list[int | str | None]:
        return [seen.health for seen in node.supervisor.observations(0.0) if isinstance(seen, ReplicaSeen)]

    await until(lambda: healths() == [200], "an answer")
    assert healths() == [None]  # until it is asked again
