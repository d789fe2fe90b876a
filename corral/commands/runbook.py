"""``corral runbook``: what an alert or a code means, and what to do about it. It needs no controller."""

import re
from importlib.resources import files

import click
import msgspec

from corral.ask import json_option
from corral.terminal import columns, say
from vocab.catalogue import codes
from vocab.errors import InputError
from vocab.runbooks import runbook

HELP = """Print a runbook: of an alert by its name, of an incident or a condition by its code (xid:79, pcie_width).
Without a name: list them."""
INDEX = "README"
NUMBERED = ("xid:", "sxid:")  # there are more than the catalogue has
# What is written by a program in each head: when the rule fires is for those who change it.
_RULE = re.compile(r"^It fires when.*?^```\n|^<!--.*?-->\n", re.DOTALL | re.MULTILINE)


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
    if name not in texts and name not in codes.ROWS and not name.startswith(NUMBERED):
        raise InputError(f"no alert and no code is named {name!r}{codes.nearest(name)}; `corral runbook` lists them")
    found = name if name in texts else runbook(name)
    if found not in texts:
        raise InputError(f"the runbook {found} is not installed; docs/install.md says how")
    text = _RULE.sub("", texts[found].read_text())
    if as_json:
        say(msgspec.json.encode({"name": found, "text": text}))
    else:
        _show(text)


def _show(text: str) -> None:
    """As it is into a pipe, laid out on a terminal."""
    if (wide := columns()) is None:
        say(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=wide).print(Markdown(text, hyperlinks=False))
