"""What int8 decodes cost: the distribution of the next token beside that of float32, of the real model, in nats.

Both go along the same texts (the oracle's answers), each with its own cache, as they do when they serve: prompts in
float32, then one token a step. The bound is what was found to do no harm to the texts (see docs/engine.md).
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.core.attention_gather import BLOCK
from engine.core.blocks import BlockPool
from engine.core.runner import Runner
from engine.core.sequence import Sampling, Sequence, Span, Step
from engine.loading import load_model
from tests.engine.replica import settings

pytestmark = pytest.mark.e2e

CASES = json.loads((Path(__file__).parent.parent / "data" / "oracle_smollm2.json").read_text())["cases"][5::33]
STEPS = 24
MEAN = 0.1  # nats a token
AGREED = 0.8  # of the tokens that are the best of both


def distributions(runner: Runner) -> torch.Tensor:
    """Log probabilities (steps, cases, vocab) behind each of the oracle's tokens."""
    pool = BlockPool(64, BLOCK)
    told = [
        Sequence(case["name"], [*case["prompt_ids"], *case["tokens"][:STEPS]], Sampling(max_tokens=STEPS), 0.0)
        for case in CASES
    ]
    for one, case in zip(told, CASES, strict=True):
        assert pool.grow(one, len(one.tokens))
        one.computed = len(case["prompt_ids"])
        with torch.inference_mode():
            runner.logits(Step((Span(one, 0, one.computed),)))
    rows: list[torch.Tensor] = []
    for _ in range(STEPS):
        spans = sorted((Span(one, one.computed, 1, samples=1) for one in told), key=lambda span: span.start)
        scores = runner.logits(Step(tuple(spans))).log_softmax(-1)
        order = [spans.index(next(span for span in spans if span.sequence is one)) for one in told]
        rows.append(scores[order])
        for one in told:
            one.computed += 1
    return torch.stack(rows)


def test_int8_decodes_stay_near_float32() -> None:
    model = load_model(settings(Path("smollm2"), model="smollm2", kv_mib=64, quantization="int8"))
    small: Any = model.runner
    exact = Runner(small._model.exact(), small._backend)
    wanted, found = distributions(exact), distributions(small)
    losses = (wanted.exp() * (wanted - found)).sum(-1)
    agreed = float((wanted.argmax(-1) == found.argmax(-1)).float().mean())
    print(f"int8 beside float32, {losses.numel()} tokens: KL {float(losses.mean()):.4f} nats in the mean,"
          f" {float(losses.quantile(0.99)):.3f} at p99; the best token agrees in {agreed:.1%}")  # fmt: skip
    assert 0 < float(losses.mean()) < MEAN
    assert agreed > AGREED
