"""The forward pass with our kernels between its matrix products: ten launches a layer instead of about forty.

The plain ``Model`` is what it must equal, up to the rounding of sums (tests hold that).
"""

import torch
from torch.nn.functional import embedding

from engine.core.attention import Backend
from engine.core.model import Layer, Make, Model, Product, of_layer
from engine.cuda import kernels
from engine.cuda.attention import PagedBackend


class FusedLayer(Layer):
    """One layer whose gate is a kernel."""

    def _gated(self, weight: torch.Tensor, make: Make) -> Product:
        both = make("gate_up", weight, None)
        return lambda x: kernels.silu_mul(both(x))


class FusedModel(Model):
    """The same weights on a ``PagedBackend``."""

    def _layer(self, number: int) -> Layer:
        return FusedLayer(of_layer(self._weights, number))

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """See Model."""
        assert isinstance(backend, PagedBackend), "the fused model turns and stores through the backend's own kernels"
        eps, turn = self.arch.norm_eps, (self._cos, self._sin)
        x = embedding(tokens, self._weights["embed"])
        residual: torch.Tensor | None = None
        for number, layer in enumerate(self._layers):
            x, residual = kernels.add_norm(x, residual, layer.attention_norm, eps)
            q = backend.store(number, layer.qkv(x), positions, turn, layer.norms, eps)
            x = layer.out(backend.answer(number, q).view(len(x), -1))
            x, residual = kernels.add_norm(x, residual, layer.feed_norm, eps)
            x = layer.down(layer.gated(x))
        return x if residual is None else x + residual
