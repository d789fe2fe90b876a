"""``corral bundle``: the evidence of an incident or a GPU in one tar, for the vendor."""

from pathlib import Path

import click
import msgspec

from corral.ask import GPU_NAMES, ask, download, find_gpu, json_option, url_option
from corral.files import force_option, refuse_to_replace
from corral.terminal import say
from vocab.events import rfc3339

HELP = f"""Pack the evidence of an incident (its id) or of a GPU into one tar: the timeline as JSON lines and as text,
the raw kernel lines, readings, versions and serials, and what the node recorded of late. Its README names what is
missing.

At each quarantine the controller that decides writes one by itself: --list shows them, and its id (b-...) fetches it.

{GPU_NAMES}"""


@click.command(help=HELP)
@click.argument("of", metavar="INCIDENT|GPU|BUNDLE", required=False)
@click.option("--list", "listed", is_flag=True, help="The bundles that were written at a quarantine.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file; left out: corral-NAME.tar here.")
@force_option
@url_option
@json_option
def command(of: str | None, listed: bool, output: Path | None, url: str, *, force: bool, as_json: bool) -> None:
    """Write the tar, and say where."""
    if listed or of is None:
        if of is not None or not listed:
            raise click.UsageError("name an incident, a GPU or a bundle; or give --list alone")
        _list(url, as_json=as_json)
        return
    kind = {"i-": "incidents", "b-": "bundles"}.get(of[:2], "gpus")
    name = find_gpu(url, of) if kind == "gpus" else of
    path = output or Path(f"corral-{name}.tar")
    refuse_to_replace(path, force=force)
    size = download(url, f"/api/v1/{kind}/{name}" + ("" if kind == "bundles" else "/bundle"), path)
    told = f"{path}: {size} bytes; its README says what is in it and what is missing"
    say(msgspec.json.encode({"file": str(path), "bytes": size}) if as_json else told)


class _Row(msgspec.Struct, frozen=True):
    """One of the controller's list, as far as it is shown."""

    id: str
    of: str
    subject: str
    at: float
    bytes: int
    missing: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()


def _list(url: str, *, as_json: bool) -> None:
    if as_json:
        for each in ask(url, "GET", "/api/v1/bundles"):
            say(msgspec.json.encode(each))
        return
    rows = ask(url, "GET", "/api/v1/bundles", list[_Row])
    for row in rows:
        lacks = f"{len(row.missing)} missing" if row.missing else "whole"
        waits = f", waits for {', '.join(row.waits_for)}" if row.waits_for else ""
        say(f"{row.id}  {rfc3339(row.at)}  {row.subject}  {row.of}  {row.bytes} bytes, {lacks}{waits}")
    if not rows:
        say("no bundle was written by this controller")
