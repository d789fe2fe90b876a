"""``corral runbook``: what to do, without a controller."""

import json

import pytest
from click.testing import CliRunner

from corral.__main__ import cli
from vocab.errors import InputError


def told(*words: str) -> str:
    found = CliRunner().invoke(cli, ["runbook", *words], standalone_mode=False, catch_exceptions=False)
    return found.output


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("CorralPcie", "CorralPcie"),
        ("pcie_width", "CorralPcie"),
        ("xid:79", "CorralGpuFault"),
        ("oom_kill", "CorralHostErrors"),
    ],
)
def test_an_alert_and_a_code_lead_to_what_to_do(name: str, title: str) -> None:
    text = told(name)
    assert text.startswith(f"# {title}\n")
    assert "## How to repair" in text
    assert "<!--" not in text


def test_a_name_that_is_none_leads_to_no_wrong_runbook() -> None:
    with pytest.raises(InputError, match="did you mean pcie_width"):
        told("pcie_widht")
    with pytest.raises(InputError, match="lists them"):
        told("CorralPciee")
    assert told("xid:9999").startswith("# CorralGpuFault\n")


def test_all_are_listed_and_each_is_a_document_for_programs() -> None:
    names = told().split()
    assert "CorralPcie" in names
    assert "README" not in names
    assert json.loads(told("--json")) == names
    assert json.loads(told("aer", "--json"))["name"] == "CorralPcie"
