"""Paged attention of plain PyTorch: gather the blocks with index_select, then scaled_dot_product_attention.

It runs on any device. On the CPU it is the fastest that was measured; on CUDA it copies the cache it reads in
every step, which a kernel of its own would not.

The heads that share one key-value head are folded into the query axis: (rows, kv_heads, group, head_dim). For
single tokens that is a view and exact; SDPA's own ``enable_gqa`` takes a slow path on the CPU (5 times slower in
bfloat16). The masks are made once a step as floats, since SDPA would convert a boolean one in every layer.
"""

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.core.sequence import Span, Step

BLOCK = 16  # tokens; small prompts waste little, and index_select copies 16 x 3 x 64 floats at once


class _Group:
    """Spans that one SDPA call answers: single tokens of several sequences, or one longer span."""

    def __init__(self, spans: tuple[Span, ...], first: int, fold: int, like: torch.Tensor) -> None:
        count = spans[0].count
        assert len(spans) == 1 or count == 1
        self.rows = slice(first, first + len(spans) * count)
        self.batch = len(spans)
        self.count = count
        lengths = [span.start + span.count for span in spans]
        self.width = -(-max(lengths) // BLOCK)  # blocks
        # Filled up with a block of its own: what others hold may be no numbers, which no mask takes away.
        tables = [(span.sequence.blocks + span.sequence.blocks[:1] * self.width)[: self.width] for span in spans]
        self.tables = torch.tensor(tables, dtype=torch.int64).flatten().to(like.device)
        self.mask = self._mask(spans, lengths, fold).to(like)

    def _mask(self, spans: tuple[Span, ...], lengths: list[int], fold: int) -> torch.Tensor:
        """0 where a query may look, -inf elsewhere; (batch, 1, 1 or fold * count, width * BLOCK)."""
        places = torch.arange(self.width * BLOCK)
        if self.count == 1:
            allowed = places < torch.tensor(lengths)[:, None]
            return _as_float(allowed)[:, None, None, :]
        ends = torch.arange(spans[0].start, spans[0].start + self.count)
        allowed = places <= ends[:, None]
        return _as_float(allowed).repeat(fold, 1)[None, None]


def _as_float(allowed: torch.Tensor) -> torch.Tensor:
    return torch.zeros(allowed.shape).masked_fill_(~allowed, float("-inf"))


class GatherBackend:
    """The paged cache of all layers on one device, (layer, block, BLOCK * 2 * kv_heads * head_dim)."""

    block = BLOCK

    def __init__(
        self,
        *,
        layers: int,
        blocks: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._device = device or torch.device("cpu")
        self._kv_heads = kv_heads
        self._dim = head_dim
        self._fold = heads // kv_heads
        # Zeros, not empty: masked places are multiplied by 0, and 0 times a stray NaN would spread (hence ``wipe``).
        # Of numpy, not torch: its zeros are pages that cost no memory until they are written.
        shape = (layers, blocks, BLOCK * 2 * kv_heads * head_dim)
        if self._device.type == "cpu":
            raw = np.zeros((*shape[:-1], shape[-1] * dtype.itemsize), np.uint8)
            self._cache = torch.from_numpy(raw).view(dtype)
        else:
            self._cache = torch.zeros(shape, dtype=dtype, device=self._device)
        self._blocks = list(self._cache)  # by layer; and the same by token
        self._tokens = [half.view(-1, 2 * kv_heads, head_dim) for half in self._blocks]
        self._slots = torch.empty(0, dtype=torch.int64)
        self._groups: list[_Group] = []
        self.decodes_only = False

    def plan(self, step: Step) -> None:
        """See Backend."""
        self.decodes_only = all(span.start > 0 and span.samples == span.count for span in step.spans)
        slots = [slot for span in step.spans for slot in _slots(span)]
        self._slots = torch.tensor(slots, dtype=torch.int64, device=self._device)
        self._groups = []
        first = 0
        for spans in _grouped(step.spans):
            group = _Group(spans, first, self._fold, self._cache)
            self._groups.append(group)
            first = group.rows.stop

    def wipe(self, blocks: list[int]) -> None:
        """See Backend."""
        self._cache[:, blocks] = 0

    def attend(self, layer: int, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        """See Backend."""
        self._tokens[layer].index_copy_(0, self._slots, kv)
        blocks = self._blocks[layer]
        if len(self._groups) == 1:
            return self._answer(self._groups[0], q, blocks)
        return torch.cat([self._answer(group, q[group.rows], blocks) for group in self._groups])

    def _answer(self, group: _Group, q: torch.Tensor, blocks: torch.Tensor) -> torch.Tensor:
        picked = blocks.index_select(0, group.tables).view(group.batch, -1, 2, self._kv_heads, self._dim)
        k, v = picked.transpose(1, 3).unbind(2)  # (batch, kv_heads, tokens, head_dim)
        if group.count == 1:
            folded = q.view(group.batch, self._kv_heads, self._fold, self._dim)
            return scaled_dot_product_attention(folded, k, v, attn_mask=group.mask).reshape(q.shape)
        # (count, kv, fold, dim) -> (1, kv, fold * count, dim): the mask repeats for each head of the fold
        folded = q.view(group.count, self._kv_heads, self._fold, self._dim).permute(1, 2, 0, 3)
        folded = folded.reshape(1, self._kv_heads, self._fold * group.count, self._dim)
        out = scaled_dot_product_attention(folded, k, v, attn_mask=group.mask)
        out = out.view(self._kv_heads, self._fold, group.count, self._dim).permute(2, 0, 1, 3)
        return out.reshape(q.shape)


def _slots(span: Span) -> list[int]:
    blocks = span.sequence.blocks
    return [blocks[place // BLOCK] * BLOCK + place % BLOCK for place in range(span.start, span.start + span.count)]


def _grouped(spans: tuple[Span, ...]) -> list[tuple[Span, ...]]:
    """Single tokens together, in one call or in two if one long context would pad all others; longer spans alone."""
    singles = sum(span.count == 1 for span in spans)
    groups = [spans[begin:end] for begin, end in _buckets([span.start for span in spans[:singles]])]
    return groups + [(span,) for span in spans[singles:]]


def _buckets(lengths: list[int]) -> list[tuple[int, int]]:
    """Ranges over ascending lengths: cut in two where that saves a quarter of the padded work or more."""
    if not lengths:
        return []
    count, longest = len(lengths), lengths[-1]
    cost, cut = min((at * lengths[at - 1] + (count - at) * longest, at) for at in range(1, count + 1))
    if cut == count or cost > 0.75 * count * longest:
        return [(0, count)]
    return [(0, cut), (cut, count)]
