"""Each alert has its runbook, current where it is written by us, and naming only commands that there are."""

import re
import shlex
from pathlib import Path

import click
import pytest

from alerts.house import ALERTS
from alerts.pages import generated
from corral.__main__ import cli

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "alerts" / "runbooks"
HEADINGS = [
    "What it means",
    "What Corral has done already",
    "What to look at",
    "How to repair",
    "When to call the vendor",
]


def test_every_alert_has_its_runbook_and_every_runbook_its_alert():
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == set(ALERTS)


def test_what_is_written_by_the_generator_is_current():
    # python -m alerts
    assert [str(path) for path, text in generated(ROOT).items() if path.read_text() != text] == []


@pytest.mark.parametrize("name", ALERTS)
def test_a_runbook_says_all_that_one_needs(name):
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    headings = re.findall(r"(?m)^## (.+)$", text)
    assert headings in (HEADINGS, [*HEADINGS, "How it clears"])
    assert all(path.exists() for path in (RUNBOOKS / link for link in re.findall(r"\]\(([^)#]+)\)", text)))


@pytest.mark.parametrize("name", ["README", *ALERTS])
def test_a_runbook_and_its_alert_name_only_commands_that_there_are(name):
    said = (RUNBOOKS / f"{name}.md").read_text()
    if name in ALERTS:
        said += ALERTS[name].summary + ALERTS[name].description
    for command in re.findall(r"`(corral [^`]+)`|(?m:^ *(corral .+)$)", said):
        assert unknown(" ".join("".join(command).split())) == "", command


def unknown(line: str) -> str:
    """The first word of a command line that ``corral`` does not know; empty if it knows all."""
    command: click.Command = cli
    context = click.Context(cli)
    for word in shlex.split(re.sub(r"\{\{.*?\}\}", "X", line))[1:]:
        if word.startswith("--"):
            options = {option for each in command.get_params(context) for option in each.opts}
            if word not in options:
                return word
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return word
            command = found
    return ""
