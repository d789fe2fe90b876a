"""The cases: each recording in tests/data/recordings that has an ``.expected.json`` beside it, played and judged.

``gf_NNN_short_name.jsonl`` is what was seen (several variants of a case are several files);
``gf_NNN_short_name.expected.json`` says what must come of it::

    {"title": "...",               what the case is about, in words of a user: a row of docs/cases.md
     "must": [partial lines],      appear in this order (other lines may stand between them)
     "must_not": [partial lines],  appear nowhere
     "times": [[3, partial line]], optional: appears exactly so many times
     "final": [partial lines],     each is as one of the final lines
     "metrics": ["name{...} 1.0"], optional: lines that ``--metrics`` prints
     "policy": "name.toml"}        optional: a file beside it, given as ``--policy``

How a partial line matches is told in partial.py. Play one of them by hand with
``corral replay --json tests/data/recordings/gf_NNN_short_name.jsonl``.
"""

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from corral.replay import replay
from tests.corral.casebook import PAGE, ROOT, cases, page
from tests.corral.partial import matches, missing_of, nearest

RECORDINGS = Path(__file__).parent.parent / "data" / "recordings"
CASES = sorted(path.name.removesuffix(".expected.json") for path in RECORDINGS.glob("*.expected.json"))
KEYS = {"title", "must", "must_not", "times", "final", "metrics", "policy"}


def expected(case: str) -> dict[str, Any]:
    wanted: dict[str, Any] = json.loads((RECORDINGS / f"{case}.expected.json").read_text())
    assert wanted.keys() <= KEYS, f"{case}: no such key: {sorted(wanted.keys() - KEYS)}"
    assert wanted.get("title"), f"{case}: has no title"
    return wanted


@cache
def played(case: str, *, metrics: bool = False) -> str:
    name = expected(case).get("policy")
    out, err = io.StringIO(), io.StringIO()
    code = replay(
        [RECORDINGS / f"{case}.jsonl"],
        RECORDINGS / name if name else None,
        metrics=metrics,
        as_json=not metrics,
        out=out,
        err=err,
    )
    assert code == 0, err.getvalue()
    return out.getvalue()


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_judged_as_it_should_be(case: str) -> None:
    wanted = expected(case)
    lines = [json.loads(line) for line in played(case).splitlines()]
    problem = missing_of(wanted.get("must", []), lines)
    assert problem is None, f"{case}: {problem}"
    for partial in wanted.get("must_not", []):
        found = [line for line in lines if matches(partial, line)]
        assert not found, f"{case}: must_not {json.dumps(partial)}, but:\n{nearest(partial, found)}"
    for times, partial in wanted.get("times", []):
        found = [line for line in lines if matches(partial, line)]
        assert len(found) == times, (
            f"{case}: {len(found)} times instead of {times}: {json.dumps(partial)}\n{nearest(partial, found or lines)}"
        )
    finals = [line for line in lines if line["kind"] == "final"]
    for partial in wanted.get("final", []):
        assert any(matches(partial, line) for line in finals), (
            f"{case}: no final line is {json.dumps(partial)}\nnearest:\n{nearest(partial, finals)}"
        )


@pytest.mark.parametrize("case", [case for case in CASES if "metrics" in expected(case)])
def test_the_metrics_of_a_case_are_as_they_should_be(case: str) -> None:
    lines = played(case, metrics=True).splitlines()
    for wanted in expected(case)["metrics"]:
        name = wanted.split("{")[0].split(" ")[0]
        near = "\n".join(line for line in lines if line.startswith(name)) or "there is no such metric"
        assert wanted in lines, f"{case}: --metrics does not print {wanted}\n{near}"


def test_each_recording_of_a_case_says_what_is_expected_of_it() -> None:
    recordings = {path.stem for path in RECORDINGS.glob("gf_*.jsonl")}
    assert recordings == {case for case in CASES if case.startswith("gf_")}


def test_the_page_of_cases_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.corral.casebook"


def test_every_test_that_the_table_of_cases_names_is_there() -> None:
    named = [test for said in cases().values() for test in said.get("tests", ())]
    split = [test.partition("::") for test in named]
    lacking = [f"{file}::{name}" for file, _, name in split if name and f"def {name}(" not in (ROOT / file).read_text()]
    assert lacking == []
