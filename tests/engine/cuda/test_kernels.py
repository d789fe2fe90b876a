"""Each kernel beside what it stands for in plain PyTorch. bfloat16 is not tried: the interpreter is wrong there."""

import pytest
import torch
from torch.nn.functional import rms_norm, silu

from engine.cuda import kernels

EPS = 1e-5
DTYPES = pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float16, 4e-3)], ids=["f32", "f16"])


def made(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@DTYPES
def test_a_sum_and_its_norm(dtype: torch.dtype, close: float) -> None:
    x, before, weight = made(3, 96, dtype=dtype), made(3, 96, dtype=dtype, seed=2), made(96, dtype=dtype, seed=3)
    out, total = kernels.add_norm(x, before.clone(), weight, EPS)
    wanted = x.float() + before.float()
    torch.testing.assert_close(total.float(), wanted, atol=close, rtol=close)
    torch.testing.assert_close(out.float(), rms_norm(wanted, (96,), weight.float(), EPS), atol=close, rtol=close)


def test_the_first_norm_of_a_model_has_nothing_to_add() -> None:
    x, weight = made(2, 40), made(40, seed=3)
    out, total = kernels.add_norm(x, None, weight, EPS)
    torch.testing.assert_close(total, x)
    torch.testing.assert_close(out, rms_norm(x, (40,), weight, EPS))


@DTYPES
@pytest.mark.parametrize("width", [48, kernels.COLUMNS + 76])
def test_a_gate(width: int, dtype: torch.dtype, close: float) -> None:
    both = made(3, 2 * width, dtype=dtype)
    wanted = silu(both[:, :width].float()) * both[:, width:].float()
    torch.testing.assert_close(kernels.silu_mul(both).float(), wanted, atol=close, rtol=close)


@DTYPES
@pytest.mark.parametrize("normed", [False, True], ids=["plain", "q and k normed"])
def test_heads_are_turned_and_kept_at_their_slots(normed: bool, dtype: torch.dtype, close: float) -> None:
    heads, kv_heads, dim, slots = 4, 2, 16, torch.tensor([5, -1, 0], dtype=torch.int32)
    joined = made(3, (heads + 2 * kv_heads) * dim, dtype=dtype)
    angles = made(10, dim // 2, seed=4)
    turn, positions = (angles.cos(), angles.sin()), torch.tensor([7, 2, 9])
    norms = (made(dim, dtype=dtype, seed=5), made(dim, dtype=dtype, seed=6)) if normed else None
    keys, values = torch.zeros(8, kv_heads, dim, dtype=dtype), torch.zeros(8, kv_heads, dim, dtype=dtype)

    q = kernels.rotate_store(joined, positions, turn, slots, norms, keys, values, heads, EPS)

    split = joined.float().view(3, -1, dim)
    wanted_q, wanted_k, wanted_v = split[:, :heads], split[:, heads : heads + kv_heads], split[:, heads + kv_heads :]
    if norms is not None:
        wanted_q, wanted_k = (
            rms_norm(x, (dim,), weight.float(), EPS) for x, weight in zip((wanted_q, wanted_k), norms, strict=True)
        )
    cos, sin = turn[0][positions][:, None], turn[1][positions][:, None]
    wanted_q, wanted_k = (
        torch.cat((x[..., :8] * cos - x[..., 8:] * sin, x[..., 8:] * cos + x[..., :8] * sin), -1)
        for x in (wanted_q, wanted_k)
    )
    torch.testing.assert_close(q.float(), wanted_q, atol=close, rtol=close)
    for kept, wanted in ((keys, wanted_k), (values, wanted_v)):
        expected = torch.zeros(8, kv_heads, dim)
        expected[5], expected[0] = wanted[0], wanted[2]
        torch.testing.assert_close(kept.float(), expected, atol=close, rtol=close)


def textbook(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, start: int) -> torch.Tensor:
    """q (count, heads, dim) of places ``start`` on; k and v (places, kv_heads, dim)."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(group, 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.float(), k) / q.shape[-1] ** 0.5
    unseen = torch.arange(len(k))[None, :] > (start + torch.arange(len(q)))[:, None]
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(unseen, float("-inf")).softmax(-1), v)


@DTYPES
@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize(
    "spans",  # (start, count) of each sequence
    [[(0, 1)], [(70, 1), (3, 1)], [(0, 9)], [(61, 6), (0, 3)]],
    ids=["first token", "decodes", "prompt", "chunks"],
)
def test_answers_over_scattered_blocks(
    spans: list[tuple[int, int]], splits: int, dtype: torch.dtype, close: float
) -> None:
    heads, kv_heads, dim, block, rows, width = 3, 1, 16, 16, 16, 5
    shuffled = torch.randperm(width * len(spans), generator=torch.Generator().manual_seed(9)).int()
    tables = shuffled.view(len(spans), width)
    keys, values = (made(width * len(spans) * block, kv_heads, dim, dtype=dtype, seed=s) for s in (1, 2))
    q = made(sum(count for _, count in spans), heads, dim, dtype=dtype, seed=3)
    tiles, wanted, first = [], [], 0
    for row, (start, count) in enumerate(spans):
        tiles += [(first + at, start + at, min(5, count - at), row) for at in range(0, count, 5)]
        cells = [int(tables[row, place // block]) * block + place % block for place in range(start + count)]
        wanted.append(textbook(q[first : first + count], keys[cells], values[cells], start))
        first += count
    tiles.append((0, 0, 0, 0))  # a pad writes nothing
    out = torch.full_like(q, 7.0)

    kernels.attend(q, keys, values, tables, torch.tensor(tiles, dtype=torch.int32), out, rows=rows, block=block,
                   splits=splits)  # fmt: skip

    torch.testing.assert_close(out.float(), torch.cat(wanted), atol=close, rtol=close)
