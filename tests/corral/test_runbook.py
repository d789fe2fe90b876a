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
    assert f"# {title}\n" in text
    assert "## How to repair" in text
    assert "<!--" not in text


def test_a_name_that_is_none_leads_to_no_wrong_runbook() -> None:
    with pytest.raises(InputError, match="did you mean pcie_width"):
        told("pcie_widht")
    with pytest.raises(InputError, match="did you mean CorralPcie"):
        told("CorralPciee")
    with pytest.raises(InputError, match="lists the alerts"):
        told("xid:abc")
    assert "# CorralGpuFault\n" in told("xid:9999")


def test_above_the_runbook_of_a_code_stands_what_the_catalogue_says_of_it() -> None:
    above, _, below = told("xid:79").partition("# CorralGpuFault")
    assert above.startswith("# xid:79: GPU has fallen off the bus\n")
    for words in ("critical; advice: reboot node; hits: gpu", "ends with a boot of the node", "stays behind: "):
        assert words in above
    assert "## How to repair" in below


@pytest.mark.parametrize("code", ["xid:13", "xid:43"])
def test_a_code_that_needs_no_action_says_so_in_place_of_the_runbook_of_a_faulty_gpu(code: str) -> None:
    text = told(code)
    assert "no action on the hardware" in text
    assert "CorralGpuFault" not in text
    assert json.loads(told(code, "--json"))["name"] is None


def test_all_are_listed_and_each_is_a_document_for_programs() -> None:
    names = told().split()
    assert "CorralPcie" in names
    assert "README" not in names
    assert json.loads(told("--json")) == names
    assert json.loads(told("aer", "--json"))["name"] == "CorralPcie"
