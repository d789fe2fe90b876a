"""``corral token``: who may ask the controller for what."""

import os
import time
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from corral.ask import ask, json_option, url_option
from corral.duration import Duration
from corral.terminal import columns, say
from vocab.errors import ConfigError
from vocab.roles import Role

WIDE = 400  # columns into a pipe: there a row is one line


def write_secret(path: Path, secret: str) -> None:
    """Put a secret into a new file that only its owner reads. Raises ConfigError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{secret}\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another file") from error


@click.group(help="Tokens are what people and programs show to the controller, each with a role: "
             f"{', '.join(role.value for role in Role)}. Only their digests are stored.")  # fmt: skip
def command() -> None:
    """Tokens."""


CREATE = """Make a token and print its secret, which is shown this once. With role `enroll` it is a one-time token, that
`corral enroll` trades for a node's own; it lasts an hour unless --ttl says otherwise, and a week at most."""


@command.command(help=CREATE)
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True, metavar="ROLE",
              help=f"What its bearer may: {', '.join(role.value for role in Role)}.")  # fmt: skip
@click.option("--name", help="Whose it is; the audit shows it. Left out: the role, and the node if it is bound to one.")
@click.option("--node", help="The only node that its bearer may speak for.")
@click.option("--ttl", type=Duration(), help="How long it counts: 30m, 12h, 365d. Left out: until it is revoked.")
@click.option("--reason", default="asked for on the command line", show_default=True, help="Why; for the audit.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this new file (0600).")
@url_option
@json_option
def create(
    role: str,
    name: str | None,
    node: str | None,
    ttl: float | None,
    reason: str,
    out: Path | None,
    url: str,
    as_json: bool,
) -> None:
    """Make a token."""
    if out is not None and out.exists():
        raise ConfigError(f"{out} exists; choose another file")  # before there is a secret to lose
    body = {"name": name or "-".join(filter(None, (role, node))), "role": role, "node": node, "reason": reason}
    made = ask(url, "POST", "/api/v1/tokens", body={**body, "ttl_s": ttl})
    if out is not None:
        write_secret(out, made["secret"])
    if as_json:
        say(msgspec.json.encode(made if out is None else made["token"]))
    elif out is None:
        click.echo(made["secret"])
    else:
        say(f"token {made['token']['id']} ({made['token']['name']}) is in {out}")


@command.command("list", help="All tokens, also those that count no more.")
@json_option
@url_option
def list_(as_json: bool, url: str) -> None:
    """Show them."""
    tokens = ask(url, "GET", "/api/v1/tokens")
    if as_json:
        say(msgspec.json.encode(tokens))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)  # it has to be copied
    for name in ("name", "role", "node", "counts", "made", "made by", "ends"):
        table.add_column(name, overflow="fold")
    for each in tokens:
        table.add_row(each["id"], each["name"], each["role"], each["node"] or "", _counts(each),
                      _day(each["made_at"]), each["made_by"], _day(each["expires_at"]) or "never")  # fmt: skip
    Console(width=columns() or WIDE).print(table)


def _counts(token: dict[str, Any]) -> str:
    if token["counts"]:
        return "yes"
    return "revoked" if token["revoked_at"] else "traded" if token["used_at"] else "expired"


def _day(at: float | None) -> str:
    return "" if at is None else time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(at))


@command.command(help="End a token: at once, within 5 seconds on other controllers.")
@click.argument("token")
@click.option("--reason", required=True, help="Why; for the audit.")
@url_option
@json_option
def revoke(token: str, reason: str, url: str, as_json: bool) -> None:
    """Revoke."""
    ended = ask(url, "DELETE", f"/api/v1/tokens/{token}", body={"reason": reason})
    say(msgspec.json.encode(ended) if as_json else f"token {ended['id']} ({ended['name']}) counts no more")
