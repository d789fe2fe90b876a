"""``corral runbook``: what an alert or a code means, and what to do about it. It needs no controller."""

import re
from importlib.resources import files

import click
import msgspec

from corral.ask import json_option
from corral.terminal import columns, say
from vocab.catalogue import codes
from vocab.catalogue.brief import brief, is_code, needs_nothing
from vocab.errors import InputError
from vocab.runbooks import runbook

HELP = """Print a runbook: of an alert by its name, of an incident or a condition by its code (xid:79, pcie_width).
Above that of a code stands what it means, how bad it is, what is advised and what ends it. Without a name: list the
alerts."""
INDEX = "README"
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
    if name not in texts and not is_code(name):
        close = codes.nearest(name, sorted(texts.keys() - {INDEX}))
        raise InputError(f"no alert and no code is named {name!r} (`corral runbook` lists the alerts){close}")
    found = name if name in texts else None if needs_nothing(name) else runbook(name)
    if found is not None and found not in texts:
        raise InputError(f"the runbook {found} is not installed; docs/install.md says how")
    above = brief(name) if name not in texts else ""
    text = _RULE.sub("", texts[found].read_text()) if found is not None else ""
    if as_json:
        say(msgspec.json.encode({"name": found, "text": text, "code": above}))
    else:
        _show("\n".join(part.rstrip() + "\n" for part in (above, text) if part).rstrip())


def _show(text: str) -> None:
    """As it is into a pipe, laid out on a terminal."""
    if (wide := columns()) is None:
        say(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=wide).print(Markdown(text, hyperlinks=False))
