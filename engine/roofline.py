"""What a step has to compute and to move, counted from shapes, and what the hardware allows for it. Pure.

With T tokens in a step, S rows whose logits are wanted, and sequences that each run n new tokens over p cached ones:

    operations   2 P T + 2 V d S + 4 L H D Σ (n p + n (n + 1) / 2)
    bytes read   w P + w V d + w d T + 2 L K D c Σ (p + n)
    written      2 L K D c T

P are the parameters of all layers that multiply, V d those of the head, L layers, H and K heads of queries and of keys,
D their size, w and c bytes of a weight and of a cached number. Weights are read once a step, whatever the batch.

A step takes at least the longest of three times: operations at the arithmetic's rate, bytes at the memory's, launches
at the rate of launching. Which one that is says what to do about it.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from engine.core.architecture import Architecture

KERNELS_A_LAYER = 24  # operations of a packed layer that compute or copy, counted; fused kernels launch fewer


class Bound(StrEnum):
    """What a step waits for."""

    COMPUTE = "compute"
    MEMORY = "memory"
    LAUNCHES = "launches"


class Shape(msgspec.Struct, frozen=True):
    """A model's sizes as the formulas name them."""

    layer_parameters: int  # P
    head_parameters: int  # V d
    hidden: int  # d
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    weight_bytes: float = 2.0
    kv_bytes: float = 2.0

    @property
    def kv_bytes_a_token(self) -> float:
        """Keys and values of all layers for one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.kv_bytes


def shape_of(arch: Architecture, weight_bytes: float, kv_bytes: float) -> Shape:
    """The shape of a model. Norms and biases, under a thousandth of it, are left out."""
    attention = arch.hidden * arch.qkv + arch.heads * arch.head_dim * arch.hidden
    layer = attention + 3 * arch.hidden * arch.intermediate
    return Shape(
        layer_parameters=arch.layers * layer,
        head_parameters=arch.vocab * arch.hidden,
        hidden=arch.hidden,
        layers=arch.layers,
        heads=arch.heads,
        kv_heads=arch.kv_heads,
        head_dim=arch.head_dim,
        weight_bytes=weight_bytes,
        kv_bytes=kv_bytes,
    )


class Cost(msgspec.Struct, frozen=True):
    """What one step, or several, compute and move."""

    flops: float = 0.0
    read: float = 0.0
    written: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.flops + other.flops, self.read + other.read, self.written + other.written)

    @property
    def bytes(self) -> float:
        """Read and written."""
        return self.read + self.written


def cost(shape: Shape, spans: Iterable[tuple[int, int]], sampled: int) -> Cost:
    """The cost of a step: ``spans`` has (cached tokens, new tokens) of each sequence, ``sampled`` rows get logits."""
    tokens = pairs = reach = 0
    for cached, new in spans:
        tokens += new
        pairs += new * cached + new * (new + 1) // 2
        reach += cached + new
    head = 2 * shape.head_parameters * sampled
    flops = 2 * shape.layer_parameters * tokens + head + 4 * shape.layers * shape.heads * shape.head_dim * pairs
    weights = shape.weight_bytes * (shape.layer_parameters + (shape.head_parameters if sampled else 0))
    rows = shape.weight_bytes * shape.hidden * tokens
    return Cost(flops, weights + rows + shape.kv_bytes_a_token * reach, shape.kv_bytes_a_token * tokens)


class Roof(msgspec.Struct, frozen=True):
    """What a device can do; None is not known, and then nothing is said of it."""

    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    launch_s: float | None = None

    @property
    def ridge(self) -> float | None:
        """Operations a byte above which arithmetic is what a step waits for."""
        return self.flops_per_s / self.bytes_per_s if self.flops_per_s and self.bytes_per_s else None

    def floor(self, of: Cost, launches: int = 0) -> tuple[float, Bound] | None:
        """The least seconds that a step takes here, and what it then waits for."""
        times: list[tuple[float, Bound]] = []
        if self.flops_per_s:
            times.append((of.flops / self.flops_per_s, Bound.COMPUTE))
        if self.bytes_per_s:
            times.append((of.bytes / self.bytes_per_s, Bound.MEMORY))
        if self.launch_s:
            times.append((launches * self.launch_s, Bound.LAUNCHES))
        return max(times) if times else None
