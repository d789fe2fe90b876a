"""This engine beside its peers on this CPU: same model, same prompts, same client, over HTTP, in the same minutes.

    python -m tests.bench.engine [--rounds 5] [--peers vllm transformers ctranslate2] [--threads N] [--beside 1]

All engines are started, and take turns: each round gives every engine the same prompts, first one request alone, then
sixteen at once; those whose turn it is not are stopped. Tables say the median of the rounds, and each round's ratio to
a peer is of the same minute. Then what prefixes that are known save, what drafts save, and what scheduler and server
cost a step. ``--beside`` keeps so many cores busy meanwhile, as other work on a node does. Peers' environments are made
once (gigabytes); one that cannot be installed is said so.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.bench.engine.contestants import Contestant, prefer, running
from tests.bench.engine.environments import Missing, prepare
from tests.bench.engine.load import Ask, Figures, Run, figures, long_prompt, prompt, repeating, together
from tests.bench.engine.overhead import overhead

OURS = ("ours", "ours-int8", "ours-drafts")
PEERS = ("vllm", "transformers", "ctranslate2")
TOKENS = 64
Runs = dict[str, list[Run]]


def compare(contestants: list[Contestant], at_once: int, rounds: int) -> Runs:
    """Each round gives each engine prompts that it has not seen, all the same."""
    found: Runs = defaultdict(list)
    for number in range(rounds):
        asks = [Ask(prompt(1000 * (number + 1) + 100 * at_once + place), TOKENS) for place in range(at_once)]
        for one in contestants:
            with one.turn() as base:
                found[one.name].append(asyncio.run(together(base, asks)))
        print(f"bench: round {number + 1} of {rounds}, {at_once} at once, load {os.getloadavg()[0]:.1f}",
              file=sys.stderr, flush=True)  # fmt: skip
    return found


def table(runs: Runs, peers: list[str]) -> None:
    """Figures, and each engine's throughput beside each peer's, round by round."""
    print("| engine | tok/s | TTFT p50 | TTFT p99 | TPOT p50 | " + " | ".join(f"x {peer}" for peer in peers) + " |")
    print("|---|" + "---|" * (4 + len(peers)))
    for name, mine in runs.items():
        f: Figures = figures(mine)
        ratios = [statistics.median(a / b for a, b in zip(f.rounds, figures(runs[peer]).rounds, strict=True))
                  for peer in peers]  # fmt: skip
        print(f"| {name} | {f.tokens_per_s:.1f} | {f.first_p50:.0f} | {f.first_p99:.0f} | {f.each_p50:.1f} | "
              + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |", flush=True)  # fmt: skip


def verdicts(runs: Runs, peers: list[str]) -> None:
    """Who is faster, in words."""
    mine = figures(runs["ours"])
    for peer in peers:
        theirs = figures(runs[peer])
        ratio = statistics.median(a / b for a, b in zip(mine.rounds, theirs.rounds, strict=True))
        faster, how = (peer, 1 / ratio) if ratio < 1 else ("ours", ratio)
        print(f"\n{faster} is {how:.2f} times as fast as {'ours' if faster == peer else peer} in float32; the first"
              f" token (p50) comes after {mine.first_p50:.0f} ms, {peer}'s after {theirs.first_p50:.0f}")  # fmt: skip
    if "ours-int8" in runs:
        small = figures(runs["ours-int8"])
        gain = statistics.median(a / b for a, b in zip(small.rounds, mine.rounds, strict=True))
        print(f"\nint8 decodes {mine.each_p50 / small.each_p50:.2f} times as fast as float32 (TPOT p50); with prompts,"
              f" which stay in float32, {gain:.2f} times")  # fmt: skip


def prefixes(contestants: list[Contestant], rounds: int) -> None:
    """Sixteen long prompts at once: with nothing in common, and with all but the end in common and known."""
    print(
        "\n**Known prefixes**: 16 prompts of about 420 tokens at once, 8 tokens each; seconds of each round's median\n"
    )
    print("| engine | nothing in common | all but the end in common | gain |\n|---|---|---|---|")
    for one in contestants:
        apart, alike = [], []
        for number in range(rounds):
            with one.turn() as base:
                asks = [Ask(long_prompt(f"{number}-{place} one", place), 8) for place in range(16)]
                apart.append(asyncio.run(together(base, asks)).seconds)
                asyncio.run(together(base, [Ask(long_prompt(f"same {number}", 99), 8)]))
                asks = [Ask(long_prompt(f"same {number}", place), 8) for place in range(16)]
                alike.append(asyncio.run(together(base, asks)).seconds)
        a, b = statistics.median(apart), statistics.median(alike)
        print(f"| {one.name} | {a:.2f} | {b:.2f} | {a / b:.1f} x |", flush=True)


def drafts(plain: Contestant, drafting: Contestant, rounds: int) -> None:
    """One request at a time whose answer repeats its prompt, with and without drafts."""
    gains, rates = [], []
    for number in range(rounds):
        asks = [Ask(repeating(number), TOKENS)]
        with plain.turn() as base:
            without = asyncio.run(together(base, asks))
        with drafting.turn() as base:
            having = asyncio.run(together(base, asks))
        assert [one.tokens for one in having.times] == [one.tokens for one in without.times], "drafts changed an answer"
        gains.append(having.tokens_per_s / without.tokens_per_s)
        rates.append((without.tokens_per_s, having.tokens_per_s))
    without_s, having_s = (statistics.median(side) for side in zip(*rates, strict=True))
    print(f"\n**Drafts by lookup**, one request that copies a line: {without_s:.1f} tok/s without, {having_s:.1f} with;"
          f" gain {statistics.median(gains):.2f} x, the same tokens")  # fmt: skip


def cpu_name() -> str:
    """The processor, as the kernel calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but use a core."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def available(peers: list[str]) -> list[str]:
    """The peers that are here or can be made; of the others it is said why not."""
    found = []
    for peer in peers:
        try:
            prepare(peer)
            found.append(peer)
        except Missing as why:
            print(f"{peer}: not measured, it cannot be installed here: {why}\n")
    return found


def measure(options: argparse.Namespace, peers: list[str], folder: Path, stack: contextlib.ExitStack) -> None:
    """All tables."""
    contestants = {}
    for name in (*OURS, *peers):
        print(f"bench: starting {name} …", file=sys.stderr, flush=True)
        one = stack.enter_context(running(name, options.threads, folder, options.nice))
        with one.turn() as base:
            asyncio.run(together(base, [Ask(prompt(place), 8) for place in range(4)]))
        contestants[name] = one
    raced = [one for name, one in contestants.items() if name != "ours-drafts"]
    for at_once in options.at_once:
        with busy(options.beside):
            runs = compare(raced, at_once, options.rounds)
        print(f"\n**{at_once} at once**, {TOKENS} tokens each after about 50, greedy; times in ms\n")
        table(runs, peers)
        verdicts(runs, peers)
    prefixes([one for one in raced if one.name in {"ours", "vllm"}], max(1, options.rounds // 2))
    drafts(contestants["ours"], contestants["ours-drafts"], options.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description="This engine beside its peers on this CPU.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--nice", type=int, default=0, help="priority of all engines and the client, where permitted")
    parser.add_argument("--beside", type=int, default=0, help="cores that are kept busy meanwhile")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that those that are stopped end too
    print(
        f"{cpu_name()}, {os.cpu_count()} cores, {options.threads} threads, load {os.getloadavg()[0]:.1f} at the start\n"
    )
    prefer(os.getpid(), options.nice)
    peers = available(options.peers)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        measure(options, peers, Path(folder), stack)
    print("\n" + overhead(options.nice))
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
