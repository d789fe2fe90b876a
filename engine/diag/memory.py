"""Device memory: most of what is free is filled with patterns and read back.

A fixed pattern and its complement flip every bit of every word; words that hold their own number show a fault of
addressing, which no fixed pattern can. All is written before anything is read, so that the values lie for a while and
caches cannot answer for the memory.
"""

from typing import Any

import torch

from engine.diag.bench import MIB, Bench
from vocab.diag import AnyFigures, Patterned, Unmeasured

TEST = "memory"
CHUNK_BYTES = 256 * MIB
WORD_BYTES = 8
FIXED = (0, -1, 0x5555555555555555, ~0x5555555555555555)


def measure(bench: Bench) -> AnyFigures:
    """Fill and read back, a pattern after the other."""
    chunks = _take(bench)
    if not chunks:
        return Unmeasured(test=TEST, why="no device memory is free")
    wrong = 0
    for pattern in FIXED:
        for chunk in chunks:
            chunk.fill_(pattern)
        _spoil(bench, chunks)
        wrong += sum(int((chunk != pattern).sum()) for chunk in chunks)
    for sign in (1, -1):
        for place, chunk in enumerate(chunks):
            torch.mul(_numbers(chunk, place), sign, out=chunk)
        _spoil(bench, chunks)
        wrong += sum(int((chunk != _numbers(chunk, place) * sign).sum()) for place, chunk in enumerate(chunks))
    size = sum(chunk.numel() * WORD_BYTES for chunk in chunks)
    return Patterned(device=bench.device, tested_bytes=size, patterns=len(FIXED) + 2, wrong_words=wrong)


def _take(bench: Bench) -> list[Any]:
    """Chunks of int64 words, as many as fit."""
    free = bench.free_bytes()
    limit = bench.sizes.most_tested_bytes or (free or 0)
    limit = min(limit, free - bench.sizes.spared_bytes) if free is not None else limit
    chunks: list[Any] = []
    size = min(CHUNK_BYTES, limit)
    while size > 0 and (len(chunks) + 1) * size <= limit:
        try:
            chunks.append(torch.empty(size // WORD_BYTES, dtype=torch.int64, device=bench.device))
        except torch.OutOfMemoryError:  # somebody else took it meanwhile
            break
    return chunks[:-2] if len(chunks) > 8 else chunks  # comparing needs room of its own


def _numbers(chunk: Any, place: int) -> Any:
    """The number of each word, never 0."""
    first = place * chunk.numel() + 1
    return torch.arange(first, first + chunk.numel(), dtype=torch.int64, device=chunk.device)


def _spoil(bench: Bench, chunks: list[Any]) -> None:
    """What a corrupt virtual GPU does to its memory."""
    bench.result(chunks[0])
