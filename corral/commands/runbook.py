"""``corral runbook``: what an alert or a code means, and what to do about it. It needs no controller."""

from importlib.resources import files

import click
import msgspec

from corral.ask import json_option
from corral.terminal import say
from vocab.errors import InputError
from vocab.runbooks import runbook

HELP = """Print a runbook: of an alert by its name, of an incident or a condition by its code (xid:79, pcie_width).
Without a name: list them."""
INDEX = "README"


@click.command(help=HELP)
@click.argument("name", metavar="ALERT|CODE", required=False)
@json_option
def command(name: str | None, *, as_json: bool) -> None:
    """Print it."""
    texts = {each.name.removesuffix(".md"): each for each in (files("alerts") / "runbooks").iterdir()}
    if name is None:
        listed = sorted(texts.keys() - {INDEX})
        say(msgspec.json.encode(listed) if as_json else "\n".join(listed))
        return
    found = name if name in texts else runbook(name)
    if found not in texts:
        raise InputError(f"the runbook {found} is not installed; docs/install.md says how")
    text = texts[found].read_text()
    say(msgspec.json.encode({"name": found, "text": text}) if as_json else _told(text))


def _told(text: str) -> str:
    """Without the rule that it is made for: `corral runbook` is for people at work."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("<!--"))
