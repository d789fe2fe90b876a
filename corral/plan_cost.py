"""What tokens cost, at least, where a GPU hour has a price. Pure; in the currency of the price."""

import msgspec

from engine.capacity import Plan, Wish

MILLION, HOUR_S = 1e6, 3600.0


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """For a million tokens, on GPUs that do nothing else and reach their bounds; None where no bound is known.

    ``output``: decoded with all requests at the same time; ``output_alone``: with one; ``input``: read of prompts.
    """

    gpu_hour: float
    input: float | None
    output: float | None
    output_alone: float | None


def cost(plan: Plan, wish: Wish, gpu_hour: float) -> Cost:
    """The least that a million tokens cost."""
    second = gpu_hour * (plan.gpus or 0) / HOUR_S
    prompt_s = None if plan.prefill_s is None else plan.prefill_s / wish.context
    return Cost(
        gpu_hour=gpu_hour,
        input=None if prompt_s is None else second * prompt_s * MILLION,
        output=_of(plan.full_tokens_per_s, second),
        output_alone=_of(plan.decode_tokens_per_s, second),
    )


def _of(tokens_per_s: float | None, second: float) -> float | None:
    return None if not tokens_per_s else second / tokens_per_s * MILLION
