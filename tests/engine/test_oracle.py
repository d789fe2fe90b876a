"""The real model against transformers, token by token, however the tokens are computed.

A part of the prompts, the first tokens of each, unless ``ORACLE=all`` (``make oracle-check``, some 15 minutes).
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.core.attention_gather import BLOCK
from engine.core.blocks import BlockPool
from engine.core.scheduler import Scheduler
from engine.core.sequence import Sampling, Sequence
from engine.core.speculation import Speculation
from engine.files.location import locate
from engine.loading import Loaded, load_model
from tests.engine.replica import settings

pytestmark = pytest.mark.e2e

ORACLE = json.loads((Path(__file__).parent.parent / "data" / "oracle_smollm2.json").read_text())
TIE = 1e-3
MOST_TIES = 0.01  # of the prompts
WHOLE = os.environ.get("ORACLE") == "all"
CASES = {case["name"]: case for case in ORACLE["cases"]}
ALL = list(CASES.values())
BATCHED = ALL if WHOLE else ALL[::9]  # of each kind
FEW = ALL if WHOLE else ALL[1::29]
SHORT = int(os.environ.get("ORACLE_TOKENS", "1000" if WHOLE else "12"))  # tokens of each of the few
BLOCKS = 300  # of the cache; the longest prompt takes 80

Case = dict[str, Any]
Answers = list[list[int]]


@pytest.fixture(scope="module")
def model() -> Loaded:
    return load_model(settings(Path("smollm2"), model="smollm2", kv_mib=256))


def scheduler(blocks: int = BLOCKS, *, tokens: int = 128, drafts: int = 0) -> Scheduler:
    return Scheduler(BlockPool(blocks, BLOCK), max_running=16, step_tokens=tokens, speculation=Speculation(drafts))


def wish(case: Case, most: int, *, known: int = 0, resumed: bool = False) -> Sequence:
    """The request for the oracle's first ``most`` tokens, of which the first ``known`` are there."""
    prompt, tokens = case["prompt_ids"], case["tokens"][:known]
    rule = Sampling(max_tokens=min(most, len(case["tokens"])) - (0 if resumed else known))
    if resumed:
        return Sequence(f"{case['name']}+{known}", prompt, rule, 0.0, generated=tokens)
    return Sequence(f"{case['name']}+{known}", prompt + tokens, rule, 0.0)


def answers(model: Loaded, by: Scheduler, sequences: list[Sequence]) -> Answers:
    for one in sequences:
        by.add(one)
    while (step := by.schedule()) is not None:
        by.settle(step, model.runner.run(step))
    assert by.pool.free == by.pool.count
    return [one.tokens[one.prompt_len :] for one in sequences]


def ties(model: Loaded, case: Case, found: list[int]) -> int:
    """Of equal tokens, 0; where they differ in a tie, the oracle's token is taken and the rest generated anew."""
    known = count = 0
    most = len(found)
    while True:
        wanted = case["tokens"][known:most]
        differ = next((place for place, pair in enumerate(zip(found, wanted, strict=True)) if pair[0] != pair[1]), None)
        if differ is None:
            return count
        known += differ
        assert case["gaps"][known] < TIE, f"{case['name']}: token {known} differs and is no tie"
        known, count = known + 1, count + 1
        [found] = answers(model, scheduler(), [wish(case, most, known=known)])


def judge(model: Loaded, cases: list[Case], found: Answers, mode: str) -> None:
    """Equal but for ties, which are few and printed."""
    count = sum(bool(ties(model, case, tokens)) for case, tokens in zip(cases, found, strict=True))
    print(f"{mode}: {len(cases)} prompts, {sum(map(len, found))} tokens, {count} with ties under {TIE}")
    assert count <= max(1, MOST_TIES * len(cases))


# ---- how the tokens are computed ----


def groups(size: int) -> Iterator[list[Case]]:
    return (FEW[at : at + size] for at in range(0, len(FEW), size))


def single(model: Loaded) -> Answers:
    by = scheduler()
    return [answers(model, by, [wish(case, SHORT)])[0] for case in FEW]


def chunked(model: Loaded) -> Answers:
    assert any(len(case["prompt_ids"]) > 7 for case in FEW)
    return answers(model, scheduler(tokens=7), [wish(case, SHORT) for case in FEW])


def preempted(model: Loaded) -> Answers:
    """Each prompt finds room, what follows does not."""

    def blocks(tokens: int) -> int:
        return -(-tokens // BLOCK)

    found: Answers = []
    preemptions = 0
    for some in groups(8):
        prompts = sum(blocks(len(case["prompt_ids"])) for case in some)
        longest = max(blocks(len(case["prompt_ids"]) + min(SHORT, len(case["tokens"]))) for case in some)
        by = scheduler(max(prompts, longest))
        found += answers(model, by, [wish(case, SHORT) for case in some])
        preemptions += by.preemptions
    assert preemptions > 0
    return found


def cached(model: Loaded) -> Answers:
    by = scheduler()
    found: Answers = []
    for some in groups(8):
        answers(model, by, [wish(case, 1) for case in some])
        hits = by.prefix_hits
        found += answers(model, by, [wish(case, SHORT) for case in some])
        blocks = sum((len(case["prompt_ids"]) - 1) // BLOCK for case in some)  # a prompt's last token is never known
        assert by.prefix_hits - hits >= blocks * BLOCK
    return found


def drafted(model: Loaded) -> Answers:
    by = scheduler(drafts=4)
    found: Answers = []
    for some in groups(2):  # drafts are for small batches
        found += answers(model, by, [wish(case, SHORT) for case in some])
    assert by.speculation.accepted > 0
    return found


def resumed(model: Loaded) -> Answers:
    asked = [wish(case, SHORT, known=min(SHORT, len(case["tokens"])) // 2, resumed=True) for case in FEW]
    return answers(model, scheduler(), asked)


@pytest.mark.parametrize("mode", [single, chunked, preempted, cached, drafted, resumed], ids=lambda mode: mode.__name__)
def test_however_tokens_are_computed_they_are_the_oracle_s(mode: Callable[[Loaded], Answers], model: Loaded) -> None:
    judge(model, FEW, mode(model), mode.__name__)


def test_prompts_in_batches_give_the_oracle_s_tokens(model: Loaded) -> None:
    judge(model, BATCHED, answers(model, scheduler(), [wish(case, 1000) for case in BATCHED]), "batched")


# ---- the file itself ----


def test_the_oracle_is_of_this_very_file() -> None:
    assert hashlib.sha256(locate("smollm2").read_bytes()).hexdigest() == ORACLE["sha256"]


def test_the_oracle_names_its_versions_and_is_long_enough() -> None:
    assert {"python", "torch", "transformers", "gguf"} <= set(ORACLE["versions"])
    assert len(CASES) == 200
    assert all(len(case["tokens"]) == len(case["gaps"]) >= 32 for case in ALL)


def test_prompts_become_the_same_tokens(model: Loaded) -> None:
    for case in ALL:
        assert model.tokenizer.encode(case["prompt"], special=False) == case["prompt_ids"]
