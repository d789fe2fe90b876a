"""What scheduler and server cost a step: an engine whose model answers at once, sixteen streams, over HTTP.

    python -m tests.bench.engine.overhead

Processor time of the step loop's thread (schedule, settle, metrics, publish, beat) and of the HTTP thread (text,
chunks, sockets), each a step of sixteen sequences, after a first run that does not count.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.bench.engine.contestants import prefer
from tests.bench.engine.environments import ROOT
from tests.bench.engine.load import Ask, together
from tests.ports import free_ports

STREAMS = 16
TOKENS = 1000
READY_S = 120.0


def overhead(nice: int = 0) -> str:
    """One line that says it."""
    [port] = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.bench.engine.overhead", "--serve", str(port), "--folder", folder]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            base = f"http://127.0.0.1:{port}"
            _until_ready(base)
            prefer(process.pid, nice)
            asks = [Ask(f"the tin can {place}", TOKENS) for place in range(STREAMS)]
            asyncio.run(together(base, asks))
            began, steps = _cpu_us(process.pid), _steps(base)
            seconds = asyncio.run(together(base, asks)).seconds
            steps = _steps(base) - steps
            http, loop = ((b - a) / steps for a, b in zip(began, _cpu_us(process.pid), strict=True))
        finally:
            process.kill()
            process.wait()
    return (f"**Scheduler and server**, a model that answers at once, {STREAMS} streams of {TOKENS} tokens: a step is"
            f" {loop:.0f} us of the step loop's thread and {http:.0f} us of the HTTP thread ({http / STREAMS:.0f} us a"
            f" token); {STREAMS * TOKENS / seconds:.0f} tok/s with the client beside it")  # fmt: skip


def _until_ready(base: str) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{base}/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the engine without a model did not become ready")


def _cpu_us(pid: int) -> tuple[float, float]:
    """Processor time of the first thread, which answers HTTP, and of all others."""
    spent = {task.name: int((task / "schedstat").read_text().split()[0]) / 1e3
             for task in Path(f"/proc/{pid}/task").iterdir()}  # fmt: skip
    first = spent.pop(str(pid))
    return first, sum(spent.values())


def _steps(base: str) -> float:
    with urllib.request.urlopen(f"{base}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith("corral_engine_steps_total "))


def serve(port: int, folder: Path) -> None:
    """An engine with a tiny model that is never computed."""
    from engine.config import EngineConfig
    from engine.core.sequence import Step
    from engine.loading import Loaded, load_model
    from engine.process import serve as serve_engine
    from tests.engine import tiny

    (folder / "tiny").mkdir()
    tiny.write_model(folder / "tiny", tiny.config(max_position_embeddings=4096))
    config = EngineConfig(replica="bench", model=str(folder / "tiny"), served_name="bench", canary_s=0.0, kv_mib=64,
                          listen=f"127.0.0.1:{port}", beat=folder / "beat")  # fmt: skip

    def load() -> Loaded:
        loaded = load_model(config)

        def answer(step: Step) -> list[int]:
            return [40 + span.start % 64 for span in step.spans for _ in range(span.samples)]

        runner: Any = loaded.runner
        runner.run = answer
        return loaded

    asyncio.run(serve_engine(config, load))


def main() -> None:
    parser = argparse.ArgumentParser(description="What scheduler and server cost a step.")
    parser.add_argument("--serve", type=int, help="be the engine, on this port")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.folder)
    else:
        print(overhead())


if __name__ == "__main__":
    main()
