import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from corral.commands.plan import command
from tests.engine.tiny import config
from vocab.errors import ModelError


def plan(*words: str) -> Any:
    return CliRunner().invoke(command, list(words), standalone_mode=False)


@pytest.mark.parametrize(
    "words",
    [
        ("llama-2-7b", "--gpu", "L40S", "--dtype", "fp16"),
        ("llama-3-70b", "--gpu", "H200-SXM", "--users", "1000", "--context", "100000"),
        ("llama-3-70b", "--gpu", "NVIDIA H200", "--gpus", "8"),
        ("qwen3-32b", "--gpu", "A100-PCIe-40GB", "--kv-dtype", "fp8"),
    ],
)
def test_the_table_fits_80_columns(words: tuple[str, ...]) -> None:
    assert max(map(len, plan(*words).output.splitlines())) <= 80


def test_the_worked_example_is_in_the_table() -> None:
    text = plan("llama-2-7b", "--gpu", "L40S", "--dtype", "fp16").output
    assert "512 KiB a token, 2.00 GiB for 4,096 tokens" in text
    assert "16 of 4,096 tokens at the same time" in text
    assert "419 operations a byte" in text


def test_what_does_not_fit_is_exit_code_1_and_no_time() -> None:
    found = plan("llama-3-70b", "--gpu", "L4", "--users", "100", "--json")
    assert found.return_value == 1
    told = json.loads(found.output)
    assert (told["gpus"], told["decode_s"], told["users"]) == (None, None, 100)


def test_what_does_not_fit_is_said_first_with_what_would_do_and_no_number_is_negative() -> None:
    found = plan("llama-3-70b", "--gpu", "L40S", "--gpus", "1")
    assert found.return_value == 1
    first = found.output.splitlines()[0]
    assert first == "does not fit: needs 135 GiB, 1 × L40S has 48 GiB; try --gpus 4"
    assert not re.search(r"[^\da-z]-\d", found.output)
    told = json.loads(plan("llama-3-70b", "--gpu", "L40S", "--gpus", "1", "--json").output)
    assert (told["requests"], told["tokens"], told["full_tokens_per_s"]) == (None, None, None)
    assert told["shortfall"]["enough"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpus", "1"), "of 40 requests on 1 × L40S; try --gpus 4"),
        (("--users", "5000"), "of 5,000 requests on 8 × L40S; no number of them up to 8 is enough"),
    ],
)
def test_users_that_do_not_all_fit_are_counted(words: tuple[str, ...], said: str) -> None:
    found = plan("llama-2-7b", "--gpu", "L40S", "--users", "40", *words)
    assert found.return_value == 1
    text = " ".join(found.output.split())
    assert text.startswith("fits ")
    assert said in text
    assert "fits" not in plan("llama-2-7b", "--gpu", "L40S", "--users", "16").output


def test_a_config_json_is_read_by_its_folder_or_its_name(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config()))
    for where in (tmp_path, tmp_path / "config.json"):
        found = plan(str(where), "--gpu", "L4", "--context", "256", "--json")
        assert json.loads(found.output)["kv_bytes_a_token"] == 2 * 3 * 2 * 8 * 2


def test_the_memory_that_the_driver_reports_counts_if_given() -> None:
    words = ("llama-2-7b", "--gpu", "A10", "--dtype", "fp16", "--json")
    assert json.loads(plan(*words).output)["requests"] == 4
    assert json.loads(plan(*words, "--memory-gib", "22.5").output)["requests"] == 3


@pytest.mark.parametrize("words", [("absent",), ("llama-2-7b", "--gpu", "H100"), ("llama-2-7b", "--gpu", "RTX 4090")])
def test_an_unknown_model_or_board_is_told_with_what_is_known(words: tuple[str, ...]) -> None:
    found = plan(*words)
    assert found.exception is not None
    assert "one of: " in str(found.exception)


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config() | {"model_type": "mamba"}))
    assert isinstance(plan(str(tmp_path)).exception, ModelError)
