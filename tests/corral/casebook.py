"""The table of all cases, docs/cases.md, from tests/data/cases.toml and the recordings that are there.

python -m tests.corral.casebook
"""

import json
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "tests" / "data" / "recordings"
PAGE = ROOT / "docs" / "cases.md"
HEAD = """\
# The cases

Faults that people who run GPU fleets have reported in public, each reduced to what was seen and to what is right.
Most are recordings: `corral replay --json tests/data/recordings/NAME.jsonl` plays one, `NAME.expected.json` beside it
says what must come of it and what must not, and `tests/corral/test_cases.py` holds Corral to that. This page is made
by `python -m tests.corral.casebook`; a test fails when it is out of date.

| case | what must hold | shown by |
|---|---|---|
"""


def cases() -> dict[str, dict[str, Any]]:
    """The cases by their names, as the table has them."""
    found: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests" / "data" / "cases.toml").read_text())
    return found


def recordings(case: str) -> list[Path]:
    """What is expected of the recordings of a case."""
    return sorted(RECORDINGS.glob(f"{case.replace('-', '_')}_*.expected.json"))


def page() -> str:
    """The page."""
    rows = [_row(case, said) for case, said in sorted(cases().items())]
    whole = sum(not _is_open(case, said) for case, said in cases().items())
    return HEAD + "".join(rows) + f"\n{whole} of {len(rows)} cases are shown whole.\n"


def _is_open(case: str, said: dict[str, Any]) -> bool:
    return "later" in said or not (recordings(case) or said.get("tests"))


def _row(case: str, said: dict[str, Any]) -> str:
    shown = [f"`{path.name.removesuffix('.expected.json')}`: {_title(path)}" for path in recordings(case)]
    shown += [f"`{test}`" for test in said.get("tests", ())]
    if _is_open(case, said):
        shown.append(f"*still to come*: {said.get('later', 'its recording')}")
    return f"| {case.upper()} | {said['title']} | {'<br>'.join(shown)} |\n"


def _title(path: Path) -> str:
    return str(json.loads(path.read_text())["title"]).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
