"""The real model against transformers, token by token."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.loading import Loaded, load_model
from engine.location import locate
from engine.sequence import Sampling, Sequence
from tests.engine.replica import settings
from tests.engine.test_runner import generate

pytestmark = pytest.mark.e2e

ORACLE = json.loads((Path(__file__).parent.parent / "data" / "oracle_smollm2.json").read_text())
TIE = 1e-3
CASES = {case["name"]: case for case in ORACLE["cases"]}
SPREAD = list(CASES.values()) if os.environ.get("ORACLE") == "all" else list(CASES.values())[::9]  # of each kind


@pytest.fixture(scope="module")
def model() -> Loaded:
    return load_model(settings(Path("smollm2"), model="smollm2", kv_mib=256))


def wish(case: dict[str, Any], known: int = 0) -> Sequence:
    """The request that leaves all but the first ``known`` tokens of the oracle to be generated."""
    prompt = case["prompt_ids"] + case["tokens"][:known]
    return Sequence(f"{case['name']}+{known}", prompt, Sampling(max_tokens=len(case["tokens"]) - known), 0.0)


def check(model: Loaded, case: dict[str, Any], found: list[int]) -> None:
    """Equal tokens; where they differ in a tie, the oracle's token is taken and the rest generated anew."""
    known = 0
    while True:
        wanted = case["tokens"][known:]
        differ = next((place for place, pair in enumerate(zip(found, wanted, strict=True)) if pair[0] != pair[1]), None)
        if differ is None:
            return
        known += differ
        assert case["gaps"][known] < TIE, f"{case['name']}: token {known} differs and is no tie"
        known += 1
        [found] = generate(model, [wish(case, known)])


def test_the_oracle_is_of_this_very_file() -> None:
    assert hashlib.sha256(locate("smollm2").read_bytes()).hexdigest() == ORACLE["sha256"]


def test_the_oracle_names_its_versions_and_is_long_enough() -> None:
    assert {"python", "torch", "transformers", "gguf"} <= set(ORACLE["versions"])
    assert len(CASES) == 200
    assert all(len(case["tokens"]) == len(case["gaps"]) >= 32 for case in ORACLE["cases"])


def test_prompts_become_the_same_tokens(model: Loaded) -> None:
    for case in CASES.values():
        assert model.tokenizer.encode(case["prompt"], special=False) == case["prompt_ids"]


def test_prompts_in_batches_give_the_oracle_s_tokens(model: Loaded) -> None:
    found = generate(model, [wish(case) for case in SPREAD])
    for case, tokens in zip(SPREAD, found, strict=True):
        check(model, case, tokens)


@pytest.mark.parametrize("name", ["one_word", "chat", "watch_long"])
def test_a_prompt_alone_gives_the_oracle_s_tokens(name: str, model: Loaded) -> None:
    [found] = generate(model, [wish(CASES[name])])
    check(model, CASES[name], found)
