"""The canary of one engine, put together and run once before the replica is ready."""

from collections.abc import Mapping
from pathlib import Path

import torch

from engine.config import EngineConfig
from engine.core.blocks import BlockPool
from engine.diag.bench import Bench
from engine.health.canary import Canary
from engine.health.golden import TOLERANCE, Golden, GoldenFile, prompts
from engine.health.outcome import Outcome
from engine.health.product import check_products, kinds_of
from engine.health.prompts import LENGTH, KnownPrompts, Scorer
from engine.health.weights_sum import WeightsSum
from vocab.clock import SystemClock


def first_run(config: EngineConfig, scorer: Scorer, pool: BlockPool, weights: Mapping[str, torch.Tensor],
              files: list[Path], max_len: int) -> Canary:  # fmt: skip
    """A canary that has made its first run; what that has learned is kept for the next start."""
    like = weights["embed"]
    kept = GoldenFile(config.cache_dir, files, like.dtype, like.device)
    known = kept.read()
    asked = KnownPrompts(scorer, pool, prompts(len(like), max_len, LENGTH), known.answers, TOLERANCE[like.dtype])
    total = WeightsSum(weights.values(), known.weights)
    bench, kinds = Bench(like.device.type), kinds_of(like.device)
    checks = (lambda: check_products(bench, kinds), total.check, asked.check)
    canary = Canary(checks, SystemClock(), config.canary_s)
    run = canary.whole()
    if run.has(Outcome.LEARNED) and not run.outcome.is_wrong:
        kept.write(Golden(total.known, asked.known))
    return canary
