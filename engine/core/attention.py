"""The border between the model and a device: where keys and values are kept and how queries meet them.

A backend is made once, owns the cache of all layers, and sees each step twice: ``plan`` turns tables and lengths
into tensors, once; ``attend`` stores this layer's keys and values and answers its queries, once a layer.
"""

from typing import Protocol

import torch

from engine.core.sequence import Step


class Backend(Protocol):
    """One device's paged attention. ``T`` is the tokens of the planned step, in the order of its spans."""

    block: int
    """Tokens in a block of the cache."""

    @property
    def decodes_only(self) -> bool:
        """Whether the planned step only continues answers: single tokens and drafts, no prompt and no first token."""
        ...

    def plan(self, step: Step) -> None:
        """Prepare for ``step``; every span's sequence has blocks for ``start + count`` tokens."""
        ...

    def wipe(self, blocks: list[int]) -> None:
        """Fill blocks with zeros, behind what was launched: what is no number there would spread to who comes next."""
        ...

    def attend(self, layer: int, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        """Store ``kv`` (T, 2 kv_heads, head_dim), keys and then values; answer ``q`` (T, heads, head_dim) causally."""
        ...


def cache_block_bytes(block: int, layers: int, kv_heads: int, head_dim: int, element_bytes: int) -> int:
    """Bytes that one block takes: keys and values of all layers."""
    return 2 * layers * block * kv_heads * head_dim * element_bytes
