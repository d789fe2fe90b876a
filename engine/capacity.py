"""How much a model takes and what a GPU gives for it: weights, KV cache, requests, bounds, loading. Pure, no torch.

Everything is counted from shapes (engine.roofline) and from the board's data sheet, so times are what no software can
beat, and memory is the board's nominal size less what is left for activations and workspace.
"""

import msgspec

from engine.core.architecture import Architecture
from engine.roofline import Bound, Roof, cost, shape_of
from vocab.catalogue.specs import Spec

GIB = 2**30
WORKSPACE_BYTES = 2 * GIB  # activations, graphs, libraries and the context
DTYPES: dict[str, float] = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5}
SHARES = (1, 2, 4, 8)  # GPUs of one node that share a model
TIERS: tuple[tuple[str, float], ...] = (  # bytes a second, one reader, as usually bought
    ("page cache, PCIe 4.0 x16", 25e9),
    ("100 GbE", 12e9),
    ("NVMe, PCIe 4.0", 7e9),
    ("10 GbE", 1.2e9),
    ("SATA SSD", 0.55e9),
)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be served."""

    context: int = 4096  # tokens of one request, prompt and answer together
    dtype: str = "bf16"
    kv_dtype: str = "bf16"
    users: int | None = None  # requests at the same time; None: as many as fit
    gpus: int | None = None  # tensor parallel; None: as few as it takes
    workspace_bytes: float = WORKSPACE_BYTES  # on each GPU


class Shortfall(msgspec.Struct, frozen=True, kw_only=True):
    """Why what is wished for does not fit: bytes of all ``gpus`` together, for all requests; if none are named, one."""

    gpus: int  # as wished for, or the most that can share it
    needs_bytes: float  # weights, cache and workspace
    has_bytes: float
    requests: int  # that fit there all the same
    enough: int | None  # GPUs that would do; None: no number of them


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. Bytes, seconds, operations; None where no number of GPUs is enough."""

    parameters: int
    weight_bytes: float
    kv_bytes_a_token: float
    request_bytes: float  # of the cache, at full context
    kv_bytes: float | None  # of all requests at the same time
    gpus: int | None
    requests: int | None  # at full context, at the same time
    tokens: int | None  # of the cache
    prefill_s: float | None  # one prompt as long as the context allows
    prefill_bound: Bound | None
    decode_s: float | None  # one step for one request at full context
    decode_tokens_per_s: float | None
    full_decode_s: float | None  # one step for all requests
    full_decode_bound: Bound | None
    full_tokens_per_s: float | None
    ridge: float  # operations a byte
    ridge_rows: float  # requests in a batch above which weights are no longer what decoding waits for
    load_s: dict[str, float]
    shortfall: Shortfall | None  # None: all that is wished for fits


def parameters(arch: Architecture) -> int:
    """All weights: layers with their norms and biases, embedding, head."""
    layer = arch.hidden * arch.qkv + arch.heads * arch.head_dim * arch.hidden + 3 * arch.hidden * arch.intermediate
    layer += 2 * arch.hidden + arch.qkv * arch.qkv_bias + 2 * arch.head_dim * arch.qk_norm
    return arch.layers * layer + arch.vocab * arch.hidden * (1 if arch.tied else 2) + arch.hidden


def plan(arch: Architecture, spec: Spec, wish: Wish) -> Plan:
    """What ``wish`` takes on boards of ``spec``."""
    shape = shape_of(arch, DTYPES[wish.dtype], DTYPES[wish.kv_dtype])
    weights = parameters(arch) * shape.weight_bytes
    request = shape.kv_bytes_a_token * wish.context
    gpus = wish.gpus or _needed(arch, spec, wish, weights, request)
    fits = 0 if gpus is None else _requests(arch, spec, wish, weights, request, gpus)
    served = fits if wish.users is None else min(wish.users, fits)
    # The rate of 16-bit numbers: in 8-bit ones prompts may be faster, in float32 they are slower by an unknown factor
    flops = None if wish.dtype == "fp32" else spec.bf16_flops_per_s * (gpus or 1)
    roof = Roof(flops, spec.memory_bytes_per_s * (gpus or 1))
    prefill = roof.floor(cost(shape, [(0, wish.context)], 1)) if fits and flops else None
    one = roof.floor(cost(shape, [(wish.context - 1, 1)], 1)) if fits else None
    full = roof.floor(cost(shape, [(wish.context - 1, 1)] * served, served)) if served else None
    return Plan(
        parameters=parameters(arch),
        weight_bytes=weights,
        kv_bytes_a_token=shape.kv_bytes_a_token,
        request_bytes=request,
        kv_bytes=None if wish.users is None else request * wish.users,
        gpus=gpus if fits else None,
        requests=fits or None,
        tokens=fits * wish.context or None,
        prefill_s=prefill[0] if prefill else None,
        prefill_bound=prefill[1] if prefill else None,
        decode_s=one[0] if one else None,
        decode_tokens_per_s=1 / one[0] if one else None,
        full_decode_s=full[0] if full else None,
        full_decode_bound=full[1] if full else None,
        full_tokens_per_s=served / full[0] if full else None,
        ridge=spec.bf16_flops_per_s / spec.memory_bytes_per_s,
        ridge_rows=spec.bf16_flops_per_s * shape.weight_bytes / (2 * spec.memory_bytes_per_s),
        load_s={name: weights / rate for name, rate in TIERS},
        shortfall=None if fits >= (wish.users or 1) else _shortfall(arch, spec, wish, weights, request),
    )


def _free(spec: Spec, wish: Wish, weights: float, gpus: int) -> float:
    """Bytes for the cache on all GPUs together."""
    return gpus * (spec.memory_bytes - wish.workspace_bytes) - weights


def _requests(arch: Architecture, spec: Spec, wish: Wish, weights: float, request: float, gpus: int) -> int:
    """How many fit at the same time; 0 also where not even the weights do."""
    return max(0, int(_free(spec, wish, weights, gpus) // (request * _copies(arch, gpus))))


def _shortfall(arch: Architecture, spec: Spec, wish: Wish, weights: float, request: float) -> Shortfall:
    gpus = wish.gpus or max(number for number in SHARES if arch.heads % number == 0)
    cache = request * _copies(arch, gpus) * (wish.users or 1)
    return Shortfall(
        gpus=gpus,
        needs_bytes=weights + cache + gpus * wish.workspace_bytes,
        has_bytes=gpus * spec.memory_bytes,
        requests=_requests(arch, spec, wish, weights, request, gpus),
        enough=_needed(arch, spec, wish, weights, request),
    )


def _copies(arch: Architecture, gpus: int) -> float:
    """How often a key-value head is kept: on more GPUs than there are such heads, more than once."""
    return max(1.0, gpus / arch.kv_heads)


def _needed(arch: Architecture, spec: Spec, wish: Wish, weights: float, request: float) -> int | None:
    """The fewest GPUs that hold the weights and what is wished for; only numbers that divide the heads."""
    for gpus in SHARES:
        held = request * _copies(arch, gpus) * (wish.users or 1)
        if arch.heads % gpus == 0 and _free(spec, wish, weights, gpus) >= held:
            return gpus
    return None
