"""The forward pass on a CPU, its weights packed once for the products: by oneDNN in float32, by FBGEMM in int8.

Packed weights are read in the order in which a product needs them; without that, it packs them anew in every step.
One row alone is quicker, by a third to a half, with the matrix lying the other way round; so it does, and its plain
form is a view of that. The gate is computed within the products while its rows are still in the processor's cache, and
heads are turned as complex numbers, their halves laid side by side: each operation less counts in a small model.

int8 is for decodes only. Activations get one scale a product, and the first tokens of a text have a few values so
large that all others vanish beside them; so prompts, and the product that meets those values (``down``), stay in
float32. ``reduce_range`` must be on: AVX2 adds pairs of int8 products in 16 bits, which overflow without it.
"""

import warnings
from copy import copy

import torch
from torch.nn.functional import silu

from engine.core.architecture import Architecture
from engine.core.attention import Backend
from engine.core.model import Layer, Make, Model, Plain, Product, Weights, of_layer

_reorder = torch.ops.mkldnn._reorder_linear_weight  # noqa: SLF001 - what torch.compile calls too; no public name
_product = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - as above
_ROWS = 16  # that a matrix is packed for; any number of rows can meet it


class Packed:
    """A float32 matrix (out, in) in oneDNN's own order, and turned for single rows; and a bias."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._weight = _reorder(weight, _ROWS)
        self._turned = weight.t().contiguous()
        self._bias = bias

    @property
    def plain(self) -> torch.Tensor:
        """The matrix, a view of what is turned."""
        return self._turned.t()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """See Product."""
        if len(x) == 1:
            single = x @ self._turned
            return single if self._bias is None else single.add_(self._bias)
        product: torch.Tensor = _product(x, self._weight, self._bias, "none", [], "")
        return product

    def silu(self, x: torch.Tensor) -> torch.Tensor:
        """The product, and then ``silu``."""
        if len(x) == 1:
            return silu(self(x), inplace=True)
        product: torch.Tensor = _product(x, self._weight, self._bias, "swish", [], "")
        return product

    def times(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """The product, and then each element times that of ``other``."""
        if len(x) == 1:
            return self(x).mul_(other)
        product: torch.Tensor = _product.binary(x, other, self._weight, self._bias, "mul")
        return product


class Int8:
    """A matrix (out, in) as int8, one scale a row of it, and a bias; what it meets is scaled as one, each time."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        scales = weight.abs().amax(dim=1).clamp(min=1e-12).double() / 127
        zeros = torch.zeros(len(weight), dtype=torch.int64)
        with warnings.catch_warnings():  # deprecated with no other way to a packed matrix; its product is not
            warnings.simplefilter("ignore", UserWarning)
            small = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._weight = torch.ops.quantized.linear_prepack(small, bias)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """See Product."""
        product: torch.Tensor = torch.ops.quantized.linear_dynamic(x, self._weight, reduce_range=True)
        return product


class PackedLayer(Layer):
    """One layer in float32, its larger matrices packed: the others, of few rows, gain nothing."""

    def __init__(self, weights: Weights) -> None:
        self.packed: dict[str, Packed] = {}
        super().__init__(weights, self._made)

    def _made(self, name: str, weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
        if name in {"out", "down"}:
            return Plain(weight, bias)
        self.packed[name] = Packed(weight, bias)
        return self.packed[name]

    def _gated(self, weight: torch.Tensor, make: Make) -> Product:
        gate, up = (Packed(half) for half in weight.chunk(2))
        self.packed |= {"gate": gate, "up": up}
        return lambda x: up.times(x, gate.silu(x))


class PackedModel(Model):
    """The same weights, packed; in ``weights`` are views of that. With ``int8`` decodes run in int8."""

    def __init__(self, arch: Architecture, weights: dict[str, torch.Tensor], positions: int, *, int8: bool) -> None:
        self._views = weights
        self._small: list[Layer] = []
        self._int8 = int8
        super().__init__(arch, weights, positions)
        self._turns = torch.complex(self._cos, self._sin)  # (positions, dim / 2)
        last = "embed" if arch.tied else "head"
        self._small_head = Int8(weights[last]) if int8 else None
        packed = Packed(weights[last])
        weights[last] = packed.plain
        self._exact, self._exact_head = self._layers, packed
        self._head = packed

    def _layer(self, number: int) -> Layer:
        """Pack one layer, so that its plain matrices go before the next one's turn."""
        at = f"{number}."
        weights = of_layer(self._views, number)
        for name in ("qkv", "qkv_bias", "q_norm", "k_norm"):
            if name in weights:
                weights[name] = side_by_side(weights[name], self.arch)
        layer = PackedLayer(weights)
        if self._int8:
            self._small.append(Layer(weights, lambda name, *given: layer.down if name == "down" else Int8(*given)))
        del self._views[at + "gate_up"]
        self._views |= {at + name: matrix.plain for name, matrix in layer.packed.items()}
        return layer

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """See Model."""
        if self._small_head is not None:
            decodes = backend.decodes_only
            self._layers = self._small if decodes else self._exact
            self._head = self._small_head if decodes else self._exact_head
        return super().forward(tokens, positions, backend)

    def exact(self) -> "PackedModel":
        """The same model without int8: what known answers of float32 can be held against."""
        other = copy(self)
        other._small_head = None  # noqa: SLF001 - of its own copy
        other._layers, other._head = self._exact, self._exact_head  # noqa: SLF001 - as above
        return other

    def _turn(self, positions: torch.Tensor) -> torch.Tensor:
        return self._turns[positions][:, None]

    def _rotate(self, heads: torch.Tensor, turn: torch.Tensor) -> None:
        torch.view_as_complex(heads.view(*heads.shape[:-1], -1, 2)).mul_(turn)


def side_by_side(rows: torch.Tensor, arch: Architecture) -> torch.Tensor:
    """``rows``, of joined queries, keys and values or of one head, each pair that turns laid side by side."""
    turned = min(len(rows), (arch.heads + arch.kv_heads) * arch.head_dim)
    pairs = rows[:turned].reshape(-1, 2, arch.head_dim // 2, *rows.shape[1:]).transpose(1, 2)
    return torch.cat((pairs.reshape(rows[:turned].shape), rows[turned:]))
