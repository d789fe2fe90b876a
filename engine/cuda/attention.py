"""Paged attention on our own kernels: tables of blocks on the device, queries in tiles, keys in splits.

What changes from step to step lies in buffers that are made once, so a captured graph reads this step's figures
when it is replayed. A sequence's row of the table is written anew only where it has changed.
"""

from collections.abc import Sequence

import numpy as np
import torch

from engine.core.sequence import Sequence as Request
from engine.core.sequence import Span, Step
from engine.cuda import kernels
from engine.cuda.prompts import Attend

BLOCK = 16  # tokens
PREFILL_ROWS = 64  # queries of a tile times the heads of a group
DECODE_ROWS = 16  # the least that tl.dot takes
MOST_SPLITS = 16  # of one sequence's keys
WAVES = 2  # programs for each multiprocessor that a launch should have


class PagedBackend:
    """The cache of all layers, (layer, 2, slots, kv_heads, head_dim), and where this step's tokens go in it.

    ``prompts`` answers prompts of which nothing is cached, if there is something faster than our own kernel.
    ``most_tokens`` and ``most_rows``: tokens and sequences of the largest step; ``longest``: of a sequence, in tokens.
    """

    block = BLOCK

    def __init__(
        self,
        *,
        layers: int,
        blocks: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        most_tokens: int,
        most_rows: int,
        longest: int,
        device: torch.device,
        dtype: torch.dtype,
        prompts: Attend | None = None,
    ) -> None:
        self._heads = heads
        self._kv_heads = kv_heads
        self._group = heads // kv_heads
        self._device = device
        self._cache = torch.zeros(layers, 2, blocks * BLOCK, kv_heads, head_dim, dtype=dtype, device=device)
        self._slots = _Mirror((most_tokens,), device)
        self._tiles = _Mirror((most_tokens + most_rows, 4), device)
        self._tables = _Mirror((most_rows, -(-longest // BLOCK)), device)
        self._rows: list[tuple[Request, int, int] | None] = [None] * most_rows  # what each row of the table shows
        self._decodes = 0  # spans of one token, which come first
        self._prefill_tiles = 0
        self._tokens = 0
        self._prompts = prompts
        self._bounds = _Mirror((most_rows + 1,), device)  # of the prompts of which nothing is cached
        self._whole = 0  # how many these are; 0 where another prompt is among them
        self._longest = 0

    @property
    def decodes_only(self) -> bool:
        """Whether every span of the planned step is one token."""
        return self._prefill_tiles == 0

    def plan(self, step: Step) -> None:
        """See Backend."""
        slots, tiles = self._slots.host, self._tiles.host
        first = tile = 0
        self._decodes = sum(span.count == 1 for span in step.spans)
        for row, span in enumerate(step.spans):
            self._show(row, span.sequence)
            places = np.arange(span.start, span.start + span.count)
            slots[first : first + span.count] = self._tables.host[row, places // BLOCK] * BLOCK + places % BLOCK
            base = 0 if row < self._decodes else self._decodes  # prefills are launched on their own
            width = 1 if row < self._decodes else max(1, PREFILL_ROWS // self._group)
            for begin in range(0, span.count, width):
                count = min(width, span.count - begin)
                tiles[tile] = (first + begin - base, span.start + begin, count, row)
                tile += 1
            first += span.count
        self._prefill_tiles = tile - self._decodes
        self._tokens = first
        self._plan_whole(step.spans[self._decodes :])
        self._slots.send(first)
        self._tiles.send(tile)
        self._tables.send(len(step.spans), max((len(span.sequence.blocks) for span in step.spans), default=0))

    def _plan_whole(self, spans: Sequence[Span]) -> None:
        """Note whether all of these prompts begin at their beginning, and where each ends."""
        self._whole = len(spans) if self._prompts and not any(span.start for span in spans) else 0
        if self._whole:
            counts = [span.count for span in spans]
            self._longest = max(counts)
            self._bounds.host[1 : self._whole + 1] = np.cumsum(counts)
            self._bounds.send(self._whole + 1)

    def pad(self, rows: int, *, planned: bool = True) -> None:
        """Grow the planned step of single tokens to ``rows``: pads store nothing, and their answers mean nothing.

        Without ``planned`` all rows are pads.
        """
        have = self._decodes if planned else 0
        self._slots.host[have:rows] = -1
        self._tiles.host[have:rows] = 0
        self._slots.send(rows)
        self._tiles.send(rows)
        self._decodes = self._tokens = rows
        self._prefill_tiles = self._whole = 0

    def _show(self, row: int, sequence: Request) -> None:
        """Bring a row of the table up to date: blocks are only ever added, or all given back at a preemption."""
        before = self._rows[row]
        have = len(sequence.blocks)
        same = before is not None and before[0] is sequence and before[1] == sequence.preemptions
        begin = before[2] if same and before is not None and before[2] <= have else 0
        if begin < have:
            self._tables.host[row, begin:have] = sequence.blocks[begin:]
        self._rows[row] = (sequence, sequence.preemptions, have)

    def store(self, layer: int, joined: torch.Tensor, positions: torch.Tensor,
              turn: tuple[torch.Tensor, torch.Tensor], norms: tuple[torch.Tensor, torch.Tensor] | None,
              eps: float) -> torch.Tensor:  # fmt: skip
        """Turn queries and keys of ``joined`` (T, (heads + 2 kv_heads) dim), keep this layer's keys and values.

        Returns the queries (T, heads, dim).
        """
        keys, values = self._cache[layer]
        slots = self._slots.device[: self._tokens]
        return kernels.rotate_store(joined, positions, turn, slots, norms, keys, values, self._heads, eps)

    def answer(self, layer: int, q: torch.Tensor) -> torch.Tensor:
        """The answers to ``q`` (T, heads, dim) in its shape, causally."""
        keys, values = self._cache[layer]
        out = torch.empty_like(q)
        tables, tiles, cut = self._tables.device, self._tiles.device, self._decodes
        if cut:
            rows = max(DECODE_ROWS, _power(self._group))
            kernels.attend(q[:cut], keys, values, tables, tiles[:cut], out[:cut], rows=rows, block=BLOCK,
                           splits=self._splits(cut))  # fmt: skip
        if self._whole and self._prompts:
            slots = self._slots.device[cut : self._tokens]
            k, v = keys.index_select(0, slots), values.index_select(0, slots)
            out[cut:] = self._prompts(q[cut:], k, v, self._bounds.device[: self._whole + 1], self._longest)
        elif self._prefill_tiles:
            rows = max(PREFILL_ROWS, _power(self._group))
            kernels.attend(q[cut:], keys, values, tables, tiles[cut : cut + self._prefill_tiles], out[cut:], rows=rows,
                           block=BLOCK, splits=1)  # fmt: skip
        return out

    def wipe(self, blocks: list[int]) -> None:
        """See Backend."""
        self._cache.view(*self._cache.shape[:2], -1, BLOCK, *self._cache.shape[3:])[:, :, blocks] = 0

    def attend(self, layer: int, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        """See Backend: for a model that turns its heads itself."""
        slots = self._slots.device[: self._tokens].long()
        for half, new in zip(self._cache[layer], kv.chunk(2, dim=1), strict=True):
            half.index_copy_(0, slots, new)
        return self.answer(layer, q.contiguous())

    def _splits(self, rows: int) -> int:
        """Enough programs to fill the GPU; the same for the same number of rows, so sums do not depend on lengths."""
        if self._device.type != "cuda":
            return 4
        wanted = WAVES * torch.cuda.get_device_properties(self._device).multi_processor_count
        return min(MOST_SPLITS, _power(-(-wanted // (rows * self._kv_heads))))


class _Mirror:
    """int32 figures that are written on the host and read on the device; the device's copy never moves.

    They go by one of two pinned buffers in turn: with one step under way and the next one planned, what is on its way
    for the one is not overwritten for the other.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.host = np.zeros(shape, np.int32)
        self.device = torch.zeros(shape, dtype=torch.int32, device=device)
        self._pinned = [torch.zeros(shape, dtype=torch.int32, pin_memory=device.type == "cuda") for _ in range(2)]

    def send(self, rows: int, columns: int | None = None) -> None:
        """Copy the first rows, or of them the first columns."""
        place = (slice(rows),) if columns is None else (slice(rows), slice(columns))
        self._pinned.reverse()
        self._pinned[0].numpy()[place] = self.host[place]
        self.device[place].copy_(self._pinned[0][place], non_blocking=True)


def _power(number: int) -> int:
    """The next power of two."""
    return 1 << max(0, number - 1).bit_length()
