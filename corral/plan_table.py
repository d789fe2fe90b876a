"""A capacity plan as text for people, within 80 columns. Pure."""

from collections.abc import Iterator
from textwrap import wrap

from corral.plan_cost import Cost
from engine.capacity import GIB, SHARES, Plan, Shortfall, Wish
from vocab.catalogue.specs import Spec


def text(model: str, spec: Spec, wish: Wish, plan: Plan, cost: Cost | None = None) -> str:
    """The whole answer."""
    rows = [*_rows(model, spec, wish, plan), *(_cost(cost) if cost is not None else ()), *_notes()]
    first = [] if plan.shortfall is None else wrap(_short(spec, wish, plan.shortfall), 80)
    return "\n".join([*first, *(f"{name:<20}{words}".rstrip() for name, words in rows)])


def _short(spec: Spec, wish: Wish, short: Shortfall) -> str:
    """That it does not fit, by how much, and what would do."""
    verb = "has" if short.gpus == 1 else "have"
    boards = f"{short.gpus} × {spec.name}"
    if short.requests:
        what = f"fits {short.requests:,} of {wish.users or 1:,} requests on {boards}"
    else:
        needs, has = short.needs_bytes / GIB, short.has_bytes / GIB
        what = f"does not fit: needs {needs:,.0f} GiB, {boards} {verb} {has:,.0f} GiB"
    if short.enough is not None:
        return f"{what}; try --gpus {short.enough}"
    return f"{what}; no number of them up to {SHARES[-1]} is enough: try another --gpu, --dtype or --context"


def _rows(model: str, spec: Spec, wish: Wish, plan: Plan) -> Iterator[tuple[str, str]]:
    size, rate, flops = spec.memory_bytes / GIB, spec.memory_bytes_per_s / 1e9, spec.bf16_flops_per_s / 1e12
    yield "model", f"{model}, {plan.parameters / 1e9:.2f} billion parameters in {wish.dtype}"
    yield "GPU", f"{spec.name}: {size:.0f} GiB, {rate:,.0f} GB/s, {flops:,.0f} TFLOP/s dense bf16"
    yield "weights", f"{plan.weight_bytes / 1e9:.1f} GB ({plan.weight_bytes / GIB:.1f} GiB)"
    request = f"{plan.request_bytes / GIB:.2f} GiB for {wish.context:,} tokens"
    yield "KV cache", f"{plan.kv_bytes_a_token / 1024:,.0f} KiB a token, {request}"
    if plan.kv_bytes is not None:
        yield "", f"{plan.kv_bytes / 1e9:.1f} GB for {wish.users:,} requests at the same time"
    if plan.requests is None or plan.gpus is None:
        yield "GPUs", f"it does not fit on {wish.gpus or 'any of 1, 2, 4 or 8'} of them"
    else:
        yield "GPUs", f"{plan.gpus}" + (" by tensor parallelism" if plan.gpus > 1 else "")
        yield "requests", f"{plan.requests:,} of {wish.context:,} tokens at the same time ({plan.tokens:,} tokens)"
        yield from _bounds(wish, plan)
    yield "ridge point", f"{plan.ridge:,.0f} operations a byte; a batch of {plan.ridge_rows:,.0f} when decoding"
    for number, (tier, seconds) in enumerate(plan.load_s.items()):
        yield "loading, at least" if number == 0 else "", f"{_time(seconds):>9} from {tier}"


def _cost(cost: Cost) -> Iterator[tuple[str, str]]:
    """For a million tokens."""
    parts = (("output, all requests", cost.output), ("output, one request", cost.output_alone), ("input", cost.input))
    known = [f"{price:,.3f} for {what}" for what, price in parts if price is not None]
    for number, words in enumerate(known or ["no bound is known"]):
        yield "1M tokens, at least" if number == 0 else "", words


def _notes() -> Iterator[tuple[str, str]]:
    yield "", "Times are bounds that no software beats. Memory is nominal:"
    yield "", "driver and ECC keep 1-6 %; --memory-gib takes what is there."


def _bounds(wish: Wish, plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.prefill_s is not None:
        yield "prefill, at least", f"{_time(plan.prefill_s)} for {wish.context:,} tokens, bound by {plan.prefill_bound}"
    if plan.decode_s is not None and plan.decode_tokens_per_s is not None:
        yield "decode, at least", f"{_time(plan.decode_s)} a token: {plan.decode_tokens_per_s:,.0f} tokens/s for one"
    if plan.full_decode_s is not None and plan.full_tokens_per_s is not None:
        words = f"{_time(plan.full_decode_s)} a step: {plan.full_tokens_per_s:,.0f} tokens/s for all"
        yield "", f"{words}, bound by {plan.full_decode_bound}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms" if seconds < 1 else f"{seconds:,.1f} s"
