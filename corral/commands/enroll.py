"""``corral enroll``: on a node, trade a one-time token for the node's own."""

import os
import platform
import shutil
from pathlib import Path
from typing import Any

import click

from corral.ask import ask_as, url_option
from corral.terminal import say
from vocab.errors import ConfigError
from wire.disk import write_durably
from wire.server import read_token

OUT = Path("/etc/corral/node.token")

HELP = """Trade the one-time token in --token-file for this node's own token and write that to --out, readable by its
owner alone. Set `controller_token_file` of agent.toml (and of the gateway beside it) to that file. An admin makes the
one-time token: corral token create --role enroll --node NODE --out FILE. This uses it up and deletes its file."""


@click.command(help=HELP)
@click.option("--node", default=platform.node, show_default="this machine's name", help="The node's name in the fleet.")
@click.option("--token-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True,
              help="The file with the one-time token.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=OUT, show_default=True,
              help="Where the node's own token goes; an old one is replaced.")  # fmt: skip
@click.option("--owner", help="The user who reads it, such as corral-agent; left out: who runs this.")
@url_option
def command(node: str, token_file: Path, out: Path, owner: str | None, url: str) -> None:
    """Enroll."""
    once = read_token(token_file)
    _must_be_writable(out)
    made = ask_as(url, str(once), "POST", "/api/v1/enroll", dict[str, Any], {"node": node})
    try:
        write_durably(out, f"{made['secret']}\n".encode(), mode=0o600)
        if owner:
            shutil.chown(out, owner)
    except (OSError, LookupError) as error:
        raise ConfigError(f"{out} cannot be written: {error}; the one-time token is used up, make another") from error
    token_file.unlink(missing_ok=True)
    say(f"node {node} has token {made['token']['id']} in {out}")


def _must_be_writable(out: Path) -> None:
    """Before the token is used up. Raises ConfigError."""
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise ConfigError(f"--out: {out.parent} cannot be written to; run as root, or choose another file")
