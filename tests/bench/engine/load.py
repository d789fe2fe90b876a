"""The client of the benchmark: streams of completions over HTTP, and what their times say."""

import asyncio
import itertools
import json
import statistics
import time

import aiohttp
import msgspec

WORDS = ("river", "engine", "copper", "lantern", "winter", "signal", "harbour", "meadow", "clock", "paper")


class Ask(msgspec.Struct, frozen=True):
    """One request: a text, and how many tokens it wants."""

    prompt: str
    tokens: int


class Times(msgspec.Struct, frozen=True):
    """Seconds of one request from when it was sent: to its first token, and between the others."""

    first: float
    gaps: list[float]
    tokens: list[int]


class Run(msgspec.Struct, frozen=True):
    """Requests that were sent at one moment, until the last had ended."""

    seconds: float
    times: list[Times]

    @property
    def tokens_per_s(self) -> float:
        """Output tokens a second, of wall time, prompts included."""
        return sum(len(one.tokens) for one in self.times) / self.seconds


def prompt(number: int) -> str:
    """About 50 tokens, different from the first on, so that no prefix is shared."""
    picked = [WORDS[(number * 7 + place * (number + 3)) % len(WORDS)] for place in range(40)]
    return f"{number}: A story of the " + ", the ".join(picked[:20]) + " and"


def long_prompt(start: str, end: int) -> str:
    """About 420 tokens; those of one ``start`` share all but the last words."""
    hours = " ".join(
        f"At {hour} the {WORDS[hour % 10]} was seen beside the {WORDS[hour * 3 % 7]}." for hour in range(27)
    )
    return f"{start}: {hours} Question {end}: what was seen at {end % 27}? Answer:"


def repeating(number: int) -> str:
    """A text that is to be written again: what prompt lookup is made for."""
    line = " ".join(WORDS[(number + place * 3) % len(WORDS)] for place in range(14))
    return f"Copy this line many times.\n{line}\n{line}\n{line}\n{line}\n"


async def one(session: aiohttp.ClientSession, base: str, ask: Ask) -> Times:
    """One stream, whose chunks carry token ids."""
    wish = {"model": "bench", "prompt": ask.prompt, "max_tokens": ask.tokens, "temperature": 0, "stream": True,
            "ignore_eos": True, "return_token_ids": True}  # fmt: skip
    sent = time.perf_counter()
    at: list[float] = []
    tokens: list[int] = []
    async with session.post(f"{base}/v1/completions", json=wish) as answer:
        answer.raise_for_status()
        async for line in answer.content:
            if line.startswith(b"data: {"):
                found = json.loads(line[6:])["choices"][0].get("token_ids") or []
                at += [time.perf_counter()] * len(found)
                tokens += found
    if len(tokens) != ask.tokens:
        raise SystemExit(f"{base}: {len(tokens)} tokens came where {ask.tokens} were asked for")
    return Times(at[0] - sent, [b - a for a, b in itertools.pairwise(at)], tokens)


async def together(base: str, asks: list[Ask]) -> Run:
    """Send them all at once; wait for the last."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600), connector=connector) as session:
        began = time.perf_counter()
        times = await asyncio.gather(*(one(session, base, ask) for ask in asks))
        return Run(time.perf_counter() - began, list(times))


class Figures(msgspec.Struct, frozen=True):
    """Of all rounds of one engine: the median of their throughputs, and the latencies of all their requests, ms."""

    tokens_per_s: float
    first_p50: float
    first_p99: float
    each_p50: float  # time per output token after the first, of a request
    rounds: list[float]  # throughput of each


def figures(runs: list[Run]) -> Figures:
    """What the rounds come to."""
    times = [one for run in runs for one in run.times]
    rounds = [run.tokens_per_s for run in runs]
    first = sorted(one.first * 1e3 for one in times)
    each = statistics.median(statistics.fmean(one.gaps) * 1e3 for one in times)
    return Figures(statistics.median(rounds), statistics.median(first), first[len(first) * 99 // 100], each, rounds)
