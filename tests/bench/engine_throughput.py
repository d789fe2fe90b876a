"""How fast one CPU replica is over HTTP: SmolLM2-135M in float32, 64 tokens a request, greedy.

    python tests/bench/engine_throughput.py [--threads 1] [--clients 1 4 16] [--tokens 64]

Starts an engine, sends that many different prompts of about 50 tokens at once, as streams, and prints a table:
output tokens a second (wall time, prompts included), time to the first token and between two tokens. The first
row of each table follows one request that warms up. Ratios within a table are sounder than its absolute numbers.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.ports import free_ports  # noqa: E402 - found only once the root of the repository is on the path


def prompt(number: int) -> str:
    """About 50 tokens, different from the first on, so that no prefix is shared."""
    words = ("river", "engine", "copper", "lantern", "winter", "signal", "harbour", "meadow", "clock", "paper")
    picked = [words[(number * 7 + place * (number + 3)) % len(words)] for place in range(40)]
    return f"{number}: A story of the " + ", the ".join(picked[:20]) + " and"


async def one(session: aiohttp.ClientSession, base: str, number: int, tokens: int) -> list[float]:
    """Times at which the tokens of one request came, the first entry being when it was sent."""
    wish = {"model": "bench", "prompt": prompt(number), "max_tokens": tokens, "temperature": 0, "stream": True,
            "ignore_eos": True, "return_token_ids": True}  # fmt: skip
    times = [time.perf_counter()]
    async with session.post(f"{base}/v1/completions", json=wish) as answer:
        answer.raise_for_status()
        async for line in answer.content:
            if line.startswith(b"data: {"):
                times += [time.perf_counter()] * len(json.loads(line[6:])["choices"][0]["token_ids"])
    assert len(times) == tokens + 1
    return times


async def row(base: str, clients: int, tokens: int) -> str:
    """One line of the table."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        began = time.perf_counter()
        runs = await asyncio.gather(*(one(session, base, 100 * clients + n, tokens) for n in range(clients)))
        took_s = time.perf_counter() - began
    first_ms = statistics.median(times[1] - times[0] for times in runs) * 1e3
    gaps_ms = sorted((b - a) * 1e3 for times in runs for a, b in itertools.pairwise(times[1:]))
    p99 = gaps_ms[len(gaps_ms) * 99 // 100]
    p50 = statistics.median(gaps_ms)
    return f"{clients:>7} {clients * tokens / took_s:>12.1f} {first_ms:>14.0f} {p50:>12.0f} {p99:>12.0f}"


async def until_ready(base: str) -> float:
    """Seconds until the engine serves."""
    began = time.perf_counter()
    async with aiohttp.ClientSession() as session:
        while time.perf_counter() - began < 120:
            try:
                async with session.get(f"{base}/ready") as answer:
                    if answer.status == 200:
                        return time.perf_counter() - began
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.05)
    raise SystemExit("the engine was not ready in 120 s")


async def measure(base: str, clients: list[int], tokens: int) -> None:
    """Print the table."""
    print(f"ready after {await until_ready(base):.1f} s")
    await row(base, 1, 8)
    print("clients output tok/s first token ms token ms p50 token ms p99")
    for count in clients:
        print(await row(base, count, tokens), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Throughput of one CPU replica.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    [port] = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "engine", "--replica", "bench", "--model", "smollm2", "--served-name", "bench",
                   "--listen", f"127.0.0.1:{port}", "--beat", f"{folder}/beat",
                   "--threads", str(options.threads)]  # fmt: skip
        engine = subprocess.Popen(command, cwd=ROOT)
        try:
            asyncio.run(measure(f"http://127.0.0.1:{port}", options.clients, options.tokens))
        finally:
            engine.terminate()
            engine.wait()


if __name__ == "__main__":
    main()
