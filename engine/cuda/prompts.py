"""Whole prompts by PyTorch's own flash attention where this build has it: faster than our kernel on long ones.

Its interface is young (2.11 has no grouped heads, later ones name them), and a build may lack the kernel for a board.
So it is tried once, on a small batch, beside the textbook, and is used only if it agrees.
"""

import inspect
import logging
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

log = logging.getLogger(__name__)

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int], torch.Tensor]
"""(q, k, v, bounds, longest) to the causal answers: q (T, heads, dim), k and v (T, kv_heads, dim), bounds int32."""

CLOSE = 0.02  # half precision on numbers of size one


def flash() -> Attend | None:
    """PyTorch's, None where this build has none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    grouped = "enable_gqa" in inspect.signature(varlen_attn).parameters

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bounds: torch.Tensor, longest: int) -> torch.Tensor:
        more: dict[str, Any] = {"enable_gqa": True} if grouped else {}
        if not grouped:
            group = q.shape[1] // k.shape[1]
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        out = varlen_attn(q, k, v, bounds, bounds, longest, longest, window_size=(-1, 0), **more)
        assert isinstance(out, torch.Tensor), "nothing beside the answers was asked for"
        return out

    return attend


def tried(attend: Attend | None, heads: int, kv_heads: int, dim: int, like: torch.Tensor) -> Attend | None:
    """``attend`` if it answers two prompts on the device and in the dtype of ``like`` as the textbook does."""
    if attend is None or like.dtype not in {torch.float16, torch.bfloat16}:
        return None
    lengths = (37, 5)
    made = torch.Generator(device=like.device).manual_seed(1)

    def random(count: int) -> torch.Tensor:
        return torch.randn(sum(lengths), count, dim, generator=made, device=like.device).to(like.dtype)

    q, k, v = random(heads), random(kv_heads), random(kv_heads)
    bounds = torch.tensor((0, lengths[0], sum(lengths)), dtype=torch.int32, device=like.device)
    try:
        found = attend(q, k, v, bounds, max(lengths))
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        log.info("prompts are answered by our own kernel", extra={"why": str(error).partition("\n")[0]})
        return None
    if not torch.allclose(found.float(), _textbook(q, k, v, lengths), atol=CLOSE, rtol=CLOSE):
        log.warning("flash attention of this PyTorch answers wrong here; prompts are answered by our own kernel")
        return None
    return attend


def _textbook(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: tuple[int, ...]) -> torch.Tensor:
    group = q.shape[1] // k.shape[1]
    parts = []
    for one in zip(*(torch.split(x.float(), list(lengths)) for x in (q, k, v)), strict=True):
        rows, keys, values = (x.transpose(0, 1) for x in one)
        keys, values = keys.repeat_interleave(group, 0), values.repeat_interleave(group, 0)
        parts.append(scaled_dot_product_attention(rows, keys, values, is_causal=True).transpose(0, 1))
    return torch.cat(parts)
