"""The forward pass with our kernels between its matrix products: ten launches a layer instead of about forty.

The plain ``Model`` is what it must equal, up to the rounding of sums (tests hold that).
"""

import torch
from torch.nn.functional import embedding, linear

from engine.attention import Backend
from engine.cuda import kernels
from engine.cuda.attention import PagedBackend
from engine.model import Model


class FusedModel(Model):
    """The same weights on a ``PagedBackend``."""

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """See Model."""
        assert isinstance(backend, PagedBackend), "the fused model turns and stores through the backend's own kernels"
        eps, turn = self.arch.norm_eps, (self._cos, self._sin)
        x = embedding(tokens, self._weights["embed"])
        residual: torch.Tensor | None = None
        for number, layer in enumerate(self._layers):
            x, residual = kernels.add_norm(x, residual, layer["attention_norm"], eps)
            joined = linear(x, layer["qkv"], layer.get("qkv_bias"))
            norms = (layer["q_norm"], layer["k_norm"]) if self.arch.qk_norm else None
            q = backend.store(number, joined, positions, turn, norms, eps)
            x = linear(backend.answer(number, q).view(len(x), -1), layer["out"])
            x, residual = kernels.add_norm(x, residual, layer["feed_norm"], eps)
            x = linear(kernels.silu_mul(linear(x, layer["gate_up"])), layer["down"])
        return x if residual is None else x + residual
