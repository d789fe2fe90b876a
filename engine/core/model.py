"""The forward pass of the Llama family, and nothing else: no cache, no sampling, no files.

Queries, keys and values come from one matrix, gate and up from another: two products fewer a layer, and fewer
operations are what small models are bound by (see docs/engine.md).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch.nn.functional import embedding, linear, rms_norm, silu

from engine.core.architecture import Architecture, Rope
from engine.core.attention import Backend

Weights = Mapping[str, torch.Tensor]


def weight_shapes(arch: Architecture) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that the model needs, in our names."""
    shapes: dict[str, tuple[int, ...]] = {"embed": (arch.vocab, arch.hidden), "norm": (arch.hidden,)}
    if not arch.tied:
        shapes["head"] = (arch.vocab, arch.hidden)
    for layer in range(arch.layers):
        at = f"{layer}."
        shapes[at + "attention_norm"] = (arch.hidden,)
        shapes[at + "qkv"] = (arch.qkv, arch.hidden)
        shapes[at + "out"] = (arch.hidden, arch.heads * arch.head_dim)
        shapes[at + "feed_norm"] = (arch.hidden,)
        shapes[at + "gate_up"] = (2 * arch.intermediate, arch.hidden)
        shapes[at + "down"] = (arch.hidden, arch.intermediate)
        if arch.qkv_bias:
            shapes[at + "qkv_bias"] = (arch.qkv,)
        if arch.qk_norm:
            shapes[at + "q_norm"] = (arch.head_dim,)
            shapes[at + "k_norm"] = (arch.head_dim,)
    return shapes


def rotary_frequencies(rope: Rope, dim: int) -> torch.Tensor:
    """Radians a position for each pair of a head's elements, (dim / 2,)."""
    plain = 1.0 / rope.theta ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind == "default":
        return plain
    # llama3: long waves are stretched by the factor, short ones kept, those between blended
    wavelength = 2 * math.pi / plain
    blend = (rope.original_max_position_embeddings / wavelength - rope.low_freq_factor) / (
        rope.high_freq_factor - rope.low_freq_factor
    )
    blend = blend.clamp(0, 1)
    return (1 - blend) * plain / rope.factor + blend * plain


class Forward(Protocol):
    """What runs a model, whatever it does it with."""

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """See Model."""
        ...

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """See Model."""
        ...


Product = Callable[[torch.Tensor], torch.Tensor]
"""A matrix (out, in), and perhaps a bias, however they lie in memory: torch's ``linear``, into a tensor of its own."""
Make = Callable[[str, torch.Tensor, torch.Tensor | None], Product]


class Plain:
    """A matrix as it came."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """See Product. MKL does it up to half as fast for a batch of rows as the product the other way round.

        On two threads that holds from 2 to 128 rows: ``linear`` leaves one of them idle where rows are few.
        """
        if x.device.type != "cpu" or len(x) == 1:
            return linear(x, self._weight, self._bias)
        product = (self._weight @ x.t()).t().contiguous()
        return product if self._bias is None else product.add_(self._bias)


def plain(_: str, weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
    """Leave a matrix as it came."""
    return Plain(weight, bias)


class Layer:
    """One layer's weights; ``make`` brings its matrices, by name, into the form in which they multiply."""

    def __init__(self, weights: Weights, make: Make = plain) -> None:
        self.attention_norm, self.feed_norm = weights["attention_norm"], weights["feed_norm"]
        self.norms = (weights["q_norm"], weights["k_norm"]) if "q_norm" in weights else None
        self.qkv = make("qkv", weights["qkv"], weights.get("qkv_bias"))
        self.out = make("out", weights["out"], None)
        self.gated = self._gated(weights["gate_up"], make)
        self.down = make("down", weights["down"], None)

    def _gated(self, weight: torch.Tensor, make: Make) -> Product:
        """What makes of ``x`` what goes down."""
        both = make("gate_up", weight, None)

        def gated(x: torch.Tensor) -> torch.Tensor:
            gate, up = both(x).chunk(2, dim=-1)
            return silu(gate).mul_(up)

        return gated


class Model:
    """A model with its weights; ``positions`` says how far the table of rotations reaches."""

    def __init__(self, arch: Architecture, weights: Weights, positions: int) -> None:
        self.arch = arch
        self._weights = weights
        self._least = torch.tensor(arch.norm_eps**0.5)
        self._layers = [self._layer(number) for number in range(arch.layers)]
        self._head: Product = Plain(weights["embed"] if arch.tied else weights["head"])
        frequencies = weights.get("rope_factors")
        turns = rotary_frequencies(arch.rope, arch.head_dim)
        if frequencies is not None:  # GGUF carries llama3's stretching as one divisor a pair
            turns = turns / frequencies.cpu()
        angles = torch.outer(torch.arange(positions, dtype=torch.float32), turns)
        device = weights["embed"].device
        self._cos, self._sin = angles.cos().to(device), angles.sin().to(device)

    def _layer(self, number: int) -> Layer:
        return Layer(of_layer(self._weights, number))

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """Hidden states (T, hidden) of ``tokens`` (T,) at ``positions`` (T,), before the last norm."""
        arch = self.arch
        x = embedding(tokens, self._weights["embed"])
        turn = self._turn(positions)
        for number, layer in enumerate(self._layers):
            joined = layer.qkv(self._norm(x, layer.attention_norm)).view(len(x), -1, arch.head_dim)
            self._normalise(joined, layer)
            self._rotate(joined[:, : arch.heads + arch.kv_heads], turn)
            answer = backend.attend(number, joined[:, : arch.heads], joined[:, arch.heads :])
            x = layer.out(answer.reshape(len(x), -1)).add_(x)
            x = layer.down(layer.gated(self._norm(x, layer.feed_norm))).add_(x)
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Scores (rows, vocab), float32, of the token after each of these hidden states (rows, hidden)."""
        return self._head(self._norm(hidden, self._weights["norm"])).float()

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """``rms_norm``, whose operations on a CPU take three times as long, and with many rows fifteen times."""
        if x.device.type != "cpu" or x.dtype is not torch.float32:
            return rms_norm(x, weight.shape, weight, self.arch.norm_eps)
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True).mul_(len(weight) ** -0.5)
        return x.div(size.hypot_(self._least)).mul_(weight)

    def _normalise(self, joined: torch.Tensor, layer: Layer) -> None:
        """In families that do so: norm the queries and keys of ``joined`` (T, heads + 2 kv_heads, dim), in place."""
        if layer.norms is not None:
            q, k = joined[:, : self.arch.heads], joined[:, self.arch.heads : -self.arch.kv_heads]
            for part, weight in zip((q, k), layer.norms, strict=True):
                part.copy_(self._norm(part, weight))

    def _turn(self, positions: torch.Tensor) -> Any:
        """Cosines and sines (T, 1, dim / 2) for these tokens."""
        return self._cos[positions][:, None], self._sin[positions][:, None]

    def _rotate(self, heads: torch.Tensor, turn: Any) -> None:
        """Turn the pairs (i, i + dim / 2) of each head of ``heads`` (T, heads, dim), in place."""
        cos, sin = turn
        left, right = heads.chunk(2, dim=-1)
        heads.copy_(torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1))


def of_layer(weights: Weights, number: int) -> dict[str, torch.Tensor]:
    """The weights of one layer, by their names within it."""
    start = f"{number}."
    return {name.removeprefix(start): tensor for name, tensor in weights.items() if name.startswith(start)}
