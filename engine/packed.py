"""The forward pass on a CPU, its weights packed once for the products: by oneDNN in float32, by FBGEMM in int8.

Packed weights are read in the order in which a product needs them; without that, it packs them anew in every step.
One row alone is quicker, by a third to a half, with the matrix lying the other way round; so it does, and its plain
form is a view of that.
int8 is for decodes only. Activations get one scale a product, and the first tokens of a text have a few values so
large that all others vanish beside them; so prompts, and the product that meets those values (``down``), stay in
float32. ``reduce_range`` must be on: AVX2 adds pairs of int8 products in 16 bits, which overflow without it.
"""

import warnings
from collections.abc import Mapping
from copy import copy
from typing import Any

import torch

from engine.architecture import Architecture
from engine.attention import Backend
from engine.config import EngineConfig
from engine.model import Model

_reorder = torch.ops.mkldnn._reorder_linear_weight  # noqa: SLF001 - what torch.compile calls too; no public name
_multiply = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - as above
_PACKED = ("qkv", "gate_up")  # of a layer: the others, with fewer rows than columns or few of both, gain nothing
_INT8 = ("qkv", "out", "gate_up")


class Packed:
    """A float32 matrix (out, in) in oneDNN's own order, and turned for single rows."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._weight = _reorder(weight, 16)  # rows that it is packed for
        self._turned = weight.t().contiguous()

    @property
    def plain(self) -> torch.Tensor:
        """The matrix, a view of what is turned."""
        return self._turned.t()

    def __call__(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """See torch's ``linear``."""
        if len(x) == 1:
            single = x @ self._turned
            return single if bias is None else single + bias
        product: torch.Tensor = _multiply(x, self._weight, bias, "none", [], "")
        return product


class Int8:
    """A matrix (out, in) as int8, one scale a row of it; what it meets is scaled as one, each time."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        scales = weight.abs().amax(dim=1).clamp(min=1e-12).double() / 127
        zeros = torch.zeros(len(weight), dtype=torch.int64)
        with warnings.catch_warnings():  # deprecated with no other way to a packed matrix; its product is not
            warnings.simplefilter("ignore", UserWarning)
            small = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._weight = torch.ops.quantized.linear_prepack(small, bias)

    def __call__(self, x: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
        """See torch's ``linear``; the bias is packed with the matrix."""
        product: torch.Tensor = torch.ops.quantized.linear_dynamic(x, self._weight, reduce_range=True)
        return product


class PackedModel(Model):
    """The same weights, packed; with ``int8`` the steps that only decode run in int8."""

    def __init__(self, arch: Architecture, weights: dict[str, torch.Tensor], positions: int, *, int8: bool) -> None:
        super().__init__(arch, weights, positions)
        self._small_head: Any = Int8(self._head) if int8 else None
        self._small_layers: list[Mapping[str, Any]] = [_small(layer) for layer in self._layers] if int8 else []
        self._head = Packed(self._head)
        for number, layer in enumerate(self._layers):
            packed = {name: Packed(layer[name]) for name in _PACKED}
            self._layers[number] = {**layer, **packed}
            for name, matrix in packed.items():  # so that the plain ones go, one after another
                weights[f"{number}.{name}"] = matrix.plain
        self._decodes = False

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """See Model."""
        self._decodes = self._small_head is not None and backend.decodes_only
        return super().forward(tokens, positions, backend)

    def exact(self) -> "PackedModel":
        """The same model without int8: what known answers of float32 can be held against."""
        other = copy(self)
        other._small_head = None  # noqa: SLF001 - of its own copy
        return other

    def _stack(self) -> list[Mapping[str, Any]]:
        return self._small_layers if self._decodes else self._layers

    def _last(self) -> Any:
        return self._small_head if self._decodes else self._head


def _small(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {**layer, **{name: Int8(layer[name], layer.get(f"{name}_bias")) for name in _INT8}}


def packs(config: EngineConfig, like: torch.Tensor) -> bool:
    """Whether to pack: what replicas map together, to share its memory, is left as it is unless int8 is asked for."""
    can = like.device.type == "cpu" and like.dtype is torch.float32
    return can and (config.quantization is not None or config.cache_dir is None)
