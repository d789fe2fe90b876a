"""What runs on the GPU beside the matrix products: four fused steps of a layer.

    add_norm      x + residual, and its RMS norm                        one program a token
    rotate_store  norm and turn q and k, put k and v into the cache     one program a token and head
    attend        queries against the paged cache, split over its keys  one program a tile of queries, kv head, split
    combine       the splits' answers to one                            one program a query and head
    silu_mul      silu(gate) * up                                       one program a token and 1,024 columns

With five matrix products that makes ten launches a layer, where PyTorch's own operations take about 38; on models
under a billion parameters launches are the limit, not bytes. Sums and softmax are in float32 whatever the dtype.
Everything that changes from step to step is read from device memory, so a graph can replay all of them.
"""

import torch
import triton
import triton.language as tl

COLUMNS = 1024  # of silu_mul's tiles
KEYS = 64  # keys that one turn of attend's loop takes: a multiple of the cache's block
LOG2E = 1.4426950408889634


@triton.jit
def _add_norm(x, residual, weight, out, eps, width: tl.constexpr, padded: tl.constexpr, first: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, padded)
    inside = at < width
    value = tl.load(x + row * width + at, mask=inside, other=0.0).to(tl.float32)
    if not first:
        value += tl.load(residual + row * width + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row * width + at, value.to(residual.dtype.element_ty), mask=inside)
    scale = tl.rsqrt(tl.sum(value * value) / width + eps)
    gain = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, (value * scale * gain).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _rotate_store(joined, positions, cos, sin, slots, q_norm, k_norm, q_out, keys, values, eps, heads: tl.constexpr,
                  kv_heads: tl.constexpr, dim: tl.constexpr, norms: tl.constexpr):  # fmt: skip
    """One head of one token of ``joined`` (T, heads + 2 kv_heads, dim); slot -1 stores nothing."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    half: tl.constexpr = dim // 2
    at = tl.arange(0, half)
    source = joined + (token * (heads + 2 * kv_heads) + head) * dim
    left = tl.load(source + at).to(tl.float32)
    right = tl.load(source + half + at).to(tl.float32)
    slot = tl.load(slots + token).to(tl.int64)
    if head < heads + kv_heads:
        if norms:
            scale = tl.rsqrt((tl.sum(left * left) + tl.sum(right * right)) / dim + eps)
            gain = q_norm if head < heads else k_norm
            left = left * scale * tl.load(gain + at).to(tl.float32)
            right = right * scale * tl.load(gain + half + at).to(tl.float32)
        place = tl.load(positions + token).to(tl.int64) * half
        c, s = tl.load(cos + place + at), tl.load(sin + place + at)
        left, right = left * c - right * s, right * c + left * s
    if head < heads:
        target = q_out + (token * heads + head) * dim
        tl.store(target + at, left.to(q_out.dtype.element_ty))
        tl.store(target + half + at, right.to(q_out.dtype.element_ty))
    elif slot >= 0:
        is_key = head < heads + kv_heads
        number = tl.where(is_key, head - heads, head - heads - kv_heads)
        target = (keys if is_key else values) + (slot * kv_heads + number) * dim
        tl.store(target + at, left.to(keys.dtype.element_ty))
        tl.store(target + half + at, right.to(keys.dtype.element_ty))


@triton.jit
def _attend(q, keys, values, tables, tiles, out, sums, scale, table_width, splits: tl.constexpr, heads: tl.constexpr,
            kv_heads: tl.constexpr, dim: tl.constexpr, block: tl.constexpr, rows: tl.constexpr,
            step: tl.constexpr):  # fmt: skip
    """One tile: ``rows`` // group tokens of one sequence times the group of heads that share a key-value head.

    ``tiles`` (n, 4): first token's row in ``q``, its position, tokens in the tile, row in ``tables``. No token: a pad.
    """
    tile = tl.program_id(0).to(tl.int64)
    kv = tl.program_id(1)
    split = tl.program_id(2)
    group: tl.constexpr = heads // kv_heads
    first = tl.load(tiles + tile * 4).to(tl.int64)
    start = tl.load(tiles + tile * 4 + 1)
    count = tl.load(tiles + tile * 4 + 2)
    table = tables + tl.load(tiles + tile * 4 + 3).to(tl.int64) * table_width

    row = tl.arange(0, rows)
    at = tl.arange(0, dim)
    token, head = row // group, kv * group + row % group
    inside = token < count
    source = ((first + token) * heads + head)[:, None] * dim + at[None, :]
    query = tl.load(q + source, mask=inside[:, None], other=0.0)

    most = tl.full((rows,), float("-inf"), tl.float32)
    total = tl.zeros((rows,), tl.float32)
    answer = tl.zeros((rows, dim), tl.float32)
    seen = tl.where(count > 0, start + count, 0)  # keys that the tile's last token sees
    share = tl.cdiv(tl.cdiv(seen, splits), step) * step
    begin = split * share
    for key in range(begin, tl.minimum(begin + share, seen), step):
        place = key + tl.arange(0, step)
        known = place < seen
        number = tl.load(table + place // block, mask=known, other=0).to(tl.int64)
        cell = ((number * block + place % block) * kv_heads + kv)[:, None] * dim + at[None, :]
        k = tl.load(keys + cell, mask=known[:, None], other=0.0)
        score = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
        score = tl.where(place[None, :] <= (start + token)[:, None], score, float("-inf"))
        higher = tl.maximum(most, tl.max(score, 1))
        shift = tl.where(higher == float("-inf"), 0.0, higher)  # a row that sees none of these keys
        weight = tl.exp2(score - shift[:, None])
        fade = tl.exp2(most - shift)
        total = total * fade + tl.sum(weight, 1)
        v = tl.load(values + cell, mask=known[:, None], other=0.0)
        answer = answer * fade[:, None] + tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        most = higher

    answer = answer / tl.where(total > 0, total, 1.0)[:, None]
    if splits == 1:
        tl.store(out + source, answer.to(out.dtype.element_ty), mask=inside[:, None])
    else:
        line = ((first + token) * heads + head) * splits + split
        tl.store(out + line[:, None] * dim + at[None, :], answer, mask=inside[:, None])
        tl.store(sums + line, most + tl.log2(tl.maximum(total, 1e-30)), mask=inside)  # -inf: it saw no key


@triton.jit
def _combine(parts, sums, out, splits: tl.constexpr, dim: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    part, at = tl.arange(0, splits), tl.arange(0, dim)
    share = tl.load(sums + line * splits + part)
    most = tl.max(share)
    weight = tl.exp2(share - tl.where(most == float("-inf"), 0.0, most))
    value = tl.load(parts + (line * splits + part)[:, None] * dim + at[None, :])
    answer = tl.sum(value * weight[:, None], 0) / tl.maximum(tl.sum(weight), 1e-30)
    tl.store(out + line * dim + at, answer.to(out.dtype.element_ty))


@triton.jit
def _silu_mul(both, out, width, columns: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * columns + tl.arange(0, columns)
    inside = at < width
    gate = tl.load(both + row * 2 * width + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(both + row * 2 * width + width + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, (gate / (1.0 + tl.exp(-gate)) * up).to(out.dtype.element_ty), mask=inside)


def add_norm(x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor,
             eps: float) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """(RMS norm of the sum, the sum) of ``x`` and ``residual`` (T, hidden); ``residual`` is overwritten by the sum."""
    first = residual is None
    residual = torch.empty_like(x) if residual is None else residual
    out = torch.empty_like(x)
    width = x.shape[-1]
    _add_norm[(len(x),)](x, residual, weight, out, eps, width, triton.next_power_of_2(width), first)
    return out, residual


def rotate_store(joined: torch.Tensor, positions: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor],
                 slots: torch.Tensor, norms: tuple[torch.Tensor, torch.Tensor] | None, keys: torch.Tensor,
                 values: torch.Tensor, heads: int, eps: float) -> torch.Tensor:  # fmt: skip
    """The turned queries (T, heads, dim) of ``joined`` (T, (heads + 2 kv_heads) dim); keys and values go to ``slots``.

    ``keys``, ``values``: one layer's cache, (slots, kv_heads, dim). ``turn``: cos, sin, float32 (positions, dim / 2).
    """
    kv_heads, dim = keys.shape[-2:]
    q = torch.empty(len(joined), heads, dim, dtype=joined.dtype, device=joined.device)
    q_norm, k_norm = norms or (joined, joined)
    _rotate_store[(len(joined), heads + 2 * kv_heads)](
        joined, positions, *turn, slots, q_norm, k_norm, q, keys, values, eps, heads, kv_heads, dim, norms is not None
    )
    return q


def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, tables: torch.Tensor, tiles: torch.Tensor,
           out: torch.Tensor, *, rows: int, block: int, splits: int) -> None:  # fmt: skip
    """Causal answers of ``q`` (T, heads, dim) over the blocks that ``tables`` (sequences, width) names, into ``out``.

    ``rows``: a power of 2 from 16 on, the queries of a tile times the heads of a group; ``tiles``: see ``_attend``;
    ``splits``: a power of 2. Rows of ``q`` that no tile names get no answer.
    """
    _, heads, dim = q.shape
    kv_heads = keys.shape[-2]
    grid = (len(tiles), kv_heads, splits)
    scale = LOG2E / dim**0.5
    parts = torch.empty(len(q), heads, splits, dim, dtype=torch.float32, device=q.device) if splits > 1 else out
    sums = torch.empty(len(q), heads, splits, dtype=torch.float32, device=q.device) if splits > 1 else out
    _attend[grid](
        q, keys, values, tables, tiles, parts, sums, scale, tables.shape[1], splits, heads, kv_heads, dim, block,
        rows, KEYS
    )  # fmt: skip
    if splits > 1:
        _combine[(len(q) * heads,)](parts, sums, out, splits, dim)


def silu_mul(both: torch.Tensor) -> torch.Tensor:
    """silu(left half) * right half of each row, (T, width) of (T, 2 width)."""
    width = both.shape[-1] // 2
    out = torch.empty(len(both), width, dtype=both.dtype, device=both.device)
    _silu_mul[(len(both), triton.cdiv(width, COLUMNS))](both, out, width, COLUMNS)
    return out
