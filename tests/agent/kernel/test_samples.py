"""Real lines of twenty years of drivers, each with the parse that it must give.

tests/data/kernel_lines.json holds them with their public source; hosts, addresses and serial numbers are neutralised.
"""

import json
from pathlib import Path

import pytest

from agent.kernel.parser import parse

SAMPLES = json.loads((Path(__file__).resolve().parents[2] / "data" / "kernel_lines.json").read_text())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample["sample"]))
def test_sample_gives_exactly_its_parse(sample):
    assert [record.to_json() for record in parse(sample["text"].split("\n"))] == [sample["expected"]]


def test_samples_in_one_file_do_not_run_into_one_another():
    lines = [line for sample in SAMPLES for line in sample["text"].split("\n")]
    assert [record.to_json() for record in parse(lines)] == [sample["expected"] for sample in SAMPLES]


def test_all_samples_are_there():
    assert len(SAMPLES) == 127
    assert all(sample["source"] for sample in SAMPLES)
