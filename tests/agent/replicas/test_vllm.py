"""A vLLM that Corral starts itself: its metrics are its beat, SIGTERM its drain."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from agent.replicas.launch import Launch, spawn_detached
from tests.agent.replicas.node import ROOT, Node, spec, stream, until
from vocab.observations import Exit

pytestmark = pytest.mark.e2e

PROGRAM = f"""#!{sys.executable}
import runpy
runpy.run_path({str(ROOT / "tests" / "fakes" / "vllm")!r}, run_name="__main__")
"""


@pytest.fixture
def vllm(node: Node, tmp_path: Path) -> Node:
    """The node with a program ``vllm`` on its PATH."""
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    node.make(inherited={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"})
    return node


def made(phase: str = "run", **times: float):
    return spec("r1", "GPU-1", "GPU-2", engine="vllm", phase=phase, options={"rate": 50}, **times)


async def test_it_is_started_on_its_gpus_and_its_metrics_are_its_beat(vllm: Node) -> None:
    await vllm.up(made())
    status = vllm.status("r1")
    assert (status.engine, status.ready, status.admitting, status.observed) == ("vllm", True, True, False)
    async with stream(status.url, 2000):
        seen = await until(
            lambda: next((s for s in _seen(vllm) if s.running == 1 and s.step), None), "it is seen to work"
        )
        assert seen.tokens
        assert vllm.status("r1").stepping


def _seen(node: Node):
    return [one for one in node.supervisor.observations(0.0) if hasattr(one, "running")]


async def test_it_drains_by_sigterm_and_what_is_open_ends_whole(vllm: Node) -> None:
    await vllm.up(made())
    async with stream(vllm.status("r1").url, 60) as answer:
        vllm.supervisor.converge([made("drain")])
        await until(lambda: vllm.status("r1").phase == "draining", "it drains")
        text = (await answer.read()).decode()
    assert "error" not in text
    assert text.rstrip().endswith("[DONE]")
    status = await vllm.phase("r1", "stopped")
    assert status.exit == Exit(code=0, reason="drained")


async def test_one_that_waits_for_ever_for_a_client_is_ended_once_its_time_is_over(vllm: Node) -> None:
    await vllm.up(made(drain_s=1.0, kill_s=0.5))
    async with stream(vllm.status("r1").url, 2000):
        vllm.supervisor.converge([made("drain", drain_s=1.0, kill_s=0.5)])
        status = await vllm.phase("r1", "stopped")
    assert status.exit == Exit(signal=signal.SIGKILL, reason="killed")


async def test_a_fence_is_the_agents_word_alone(vllm: Node) -> None:
    await vllm.up(made())
    vllm.supervisor.fence("GPU-2")
    await until(lambda: not vllm.status("r1").admitting, "it is out of rotation")
    assert vllm.status("r1").phase == "ready"
    vllm.supervisor.unfence("GPU-2")
    await until(lambda: vllm.status("r1").admitting, "it is back")


async def test_a_new_agent_takes_it_over(vllm: Node) -> None:
    await vllm.up(made())
    pid = vllm.status("r1").pid
    await vllm.halt()
    vllm.make()
    assert vllm.supervisor.adopt() == ("r1",)
    await vllm.up(made())
    assert vllm.status("r1").pid == pid


async def test_one_that_cannot_start_says_why(node: Node) -> None:
    def broken(launch: Launch) -> int:
        words = "import sys; print('ValueError: No available memory for the cache blocks.'); sys.exit('see above')"
        return spawn_detached(Launch((sys.executable, "-c", words), launch.env, launch.log))

    node.make(spawn=broken)
    node.supervisor.converge([made()])
    node.run()
    status = await until(lambda: (s := node.status("r1")).exit and s, "it has ended")
    assert "No available memory" in status.exit.text
    await asyncio.sleep(0)
