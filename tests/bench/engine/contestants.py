"""The engines that are compared, as processes: how each is started, held still while others run, and ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.bench.engine.environments import CACHE, CT2, MODEL, ROOT, python
from tests.ports import free_ports

READY_S = 600.0  # vLLM compiles at its first start
HERE = Path(__file__).parent
_VLLM = {"VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "2",
         "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip


class Recipe(msgspec.Struct, frozen=True):
    """How a contestant is started; ``needs`` names its environment (see environments.prepare)."""

    name: str
    words: str
    command: tuple[object, ...]
    needs: str = ""
    health: str = "/health"
    env: dict[str, str] = {}


def recipes(threads: int, folder: Path, port: int) -> dict[str, Recipe]:
    """All contestants by name; ``folder`` takes what ours writes."""
    ours = (sys.executable, "-m", "engine", "--replica", "bench", "--model", "smollm2", "--served-name", "bench",
            "--listen", f"127.0.0.1:{port}", "--beat", folder / f"beat-{port}", "--threads", threads,
            "--kv-mib", 512, "--canary-s", 0, "--step-tokens", 512)  # fmt: skip
    shim = (python("transformers"), HERE / "peer_server.py")
    at = ("--port", port, "--threads", threads)
    found = (
        Recipe("ours", "this engine, float32", ours, health="/ready"),
        Recipe("ours-int8", "this engine, --quantization int8", (*ours, "--quantization", "int8"), health="/ready"),
        Recipe("ours-drafts", "this engine, --speculative-tokens 4", (*ours, "--speculative-tokens", 4),
               health="/ready"),
        Recipe("vllm", "vllm-cpu 0.32, float32, its own server",
               (CACHE / "vllm" / "bin" / "vllm", "serve", MODEL, "--served-model-name", "bench", "--dtype", "float32",
                "--host", "127.0.0.1", "--port", port, "--max-model-len", 2048, "--max-num-seqs", 16),
               "vllm", env=_VLLM),
        Recipe("transformers", "transformers 5.24, generate in batches, float32",
               (*shim, "transformers", MODEL, MODEL, *at), "transformers"),
        Recipe("ctranslate2", "CTranslate2 4.8, generate_batch, float32", (*shim, "ctranslate2", CT2, MODEL, *at),
               "ctranslate2"),
    )  # fmt: skip
    return {one.name: one for one in found}


class Contestant:
    """One engine that runs. It is stopped (SIGSTOP) when it is not its turn, so that none takes another's time."""

    def __init__(self, recipe: Recipe, process: subprocess.Popen[bytes], port: int) -> None:
        self.name = recipe.name
        self.recipe = recipe
        self.base = f"http://127.0.0.1:{port}"
        self.pid = process.pid
        self._process = process

    def until_ready(self, priority: int) -> None:
        """Wait until it answers. Raises SystemExit."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and self._process.poll() is None:
            prefer(self.pid, priority)  # children that open sessions of their own too
            with contextlib.suppress(urllib.error.URLError, OSError), \
                    urllib.request.urlopen(self.base + self.recipe.health, timeout=5):  # fmt: skip
                return
            time.sleep(0.5)
        raise SystemExit(f"{self.name} did not become ready")

    @contextlib.contextmanager
    def turn(self) -> Iterator[str]:
        """Its address, while it may run."""
        self._signal(signal.SIGCONT)
        try:
            yield self.base
        finally:
            self._signal(signal.SIGSTOP)

    def stop(self) -> None:
        """End it and all its children."""
        self._signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        for pid in family(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@contextlib.contextmanager
def running(recipe_name: str, threads: int, folder: Path, priority: int) -> Iterator[Contestant]:
    """Start one; its output goes to a file in ``folder``."""
    [port] = free_ports(1)
    recipe = recipes(threads, folder, port)[recipe_name]
    env = {**os.environ, **recipe.env, "OMP_NUM_THREADS": str(threads)}
    with (folder / f"{recipe_name}.log").open("wb") as log:
        process = subprocess.Popen([str(part) for part in recipe.command], cwd=ROOT, env=env, stdout=log, stderr=log)
    contestant = Contestant(recipe, process, port)
    try:
        contestant.until_ready(priority)
        yield contestant
    except SystemExit:
        print("\n".join((folder / f"{recipe_name}.log").read_text().splitlines()[-15:]), file=sys.stderr)
        raise
    finally:
        contestant.stop()


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in task.read_text().split()]
    return found


def prefer(pid: int, nice: int) -> None:
    """On a machine that others use: give a family another priority, where the kernel groups by session too."""
    if not nice:
        return
    for one in family(pid):
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                os.setpriority(os.PRIO_PROCESS, int(task.name), nice)
            Path(f"/proc/{one}/autogroup").write_text(str(nice))
