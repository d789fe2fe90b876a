"""The forward pass of the Llama family, and nothing else: no cache, no sampling, no files.

Queries, keys and values come from one matrix, gate and up from another: two products fewer a layer, and fewer
operations are what small models are bound by (see docs/engine.md).
"""

import math
from collections.abc import Mapping
from typing import Any, Protocol, cast

import torch
from torch.nn.functional import embedding, linear, rms_norm, silu

from engine.architecture import Architecture, Rope
from engine.attention import Backend

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


class Model:
    """A model with its weights; ``positions`` says how far the table of rotations reaches."""

    def __init__(self, arch: Architecture, weights: Weights, positions: int) -> None:
        self.arch = arch
        self._weights = weights
        self._layers: list[Mapping[str, Any]] = [_layer_weights(weights, layer) for layer in range(arch.layers)]
        self._head: Any = weights["embed"] if arch.tied else weights["head"]
        frequencies = weights.get("rope_factors")
        turns = rotary_frequencies(arch.rope, arch.head_dim)
        if frequencies is not None:  # GGUF carries llama3's stretching as one divisor a pair
            turns = turns / frequencies.cpu()
        angles = torch.outer(torch.arange(positions, dtype=torch.float32), turns)
        device = weights["embed"].device
        self._cos, self._sin = angles.cos().to(device), angles.sin().to(device)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """Hidden states (T, hidden) of ``tokens`` (T,) at ``positions`` (T,), before the last norm."""
        x = embedding(tokens, self._weights["embed"])
        turn = self._cos[positions][:, None, :], self._sin[positions][:, None, :]
        for number, layer in enumerate(self._stack()):
            x = x + self._attention(number, layer, self._norm(x, layer["attention_norm"]), turn, backend)
            x = x + _feed_forward(layer, self._norm(x, layer["feed_norm"]))
        return x

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Scores (rows, vocab), float32, of the token after each of these hidden states (rows, hidden)."""
        return _project(self._norm(hidden, self._weights["norm"]), self._last()).float()

    def _stack(self) -> list[Mapping[str, Any]]:
        """The layers' weights, as the step under way takes them."""
        return self._layers

    def _last(self) -> Any:
        return self._head

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, weight.shape, weight, self.arch.norm_eps)

    def _attention(self, number: int, layer: Mapping[str, Any], x: torch.Tensor,
                   turn: tuple[torch.Tensor, torch.Tensor], backend: Backend) -> torch.Tensor:  # fmt: skip
        arch = self.arch
        joined = _project(x, layer["qkv"], layer.get("qkv_bias")).view(len(x), -1, arch.head_dim)
        both, v = joined[:, : arch.heads + arch.kv_heads], joined[:, arch.heads + arch.kv_heads :]
        if arch.qk_norm:
            q, k = both[:, : arch.heads], both[:, arch.heads :]
            both = torch.cat((self._norm(q, layer["q_norm"]), self._norm(k, layer["k_norm"])), dim=1)
        both = _rotate(both, *turn)
        answer = backend.attend(number, both[:, : arch.heads], both[:, arch.heads :], v)
        return _project(answer.reshape(len(x), -1), layer["out"])


def _project(x: torch.Tensor, weight: Any, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``linear``, which MKL does up to half as fast for a batch of rows as the product the other way round.

    On two threads that holds from 2 to 128 rows: ``linear`` leaves one of them idle where rows are few. A weight that
    is no tensor is packed, and multiplies itself (engine/packed.py).
    """
    if not isinstance(weight, torch.Tensor):
        return cast("torch.Tensor", weight(x, bias))
    if x.device.type == "cpu" and len(x) > 1:
        product = (weight @ x.t()).t().contiguous()
        return product if bias is None else product + bias
    return linear(x, weight, bias)


def _layer_weights(weights: Weights, layer: int) -> Weights:
    start = f"{layer}."
    return {name.removeprefix(start): tensor for name, tensor in weights.items() if name.startswith(start)}


def _feed_forward(layer: Mapping[str, Any], x: torch.Tensor) -> torch.Tensor:
    gate, up = _project(x, layer["gate_up"]).chunk(2, dim=-1)
    return _project(silu(gate) * up, layer["down"])


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn the pairs (i, i + dim / 2) of each head; x (T, heads, dim), cos and sin (T, 1, dim / 2) in float32."""
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)
