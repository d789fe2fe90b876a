"""``corral bundle``: the evidence of an incident or a GPU in one tar, for the vendor."""

from pathlib import Path

import click

from corral.ask import GPU_NAMES, download, find_gpu, url_option

HELP = f"""Pack the evidence of an incident (its id) or of a GPU into one tar: the timeline as JSON lines and as text,
the raw kernel lines, readings, versions and serials, and what the node recorded of late. Its README names what is
missing.

{GPU_NAMES}"""


@click.command(help=HELP)
@click.argument("of", metavar="INCIDENT|GPU")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file; left out: corral-NAME.tar here.")
@url_option
def command(of: str, output: Path | None, url: str) -> None:
    """Write the tar, and say where."""
    incident = of.startswith("i-")
    name = of if incident else find_gpu(url, of)
    path = output or Path(f"corral-{name}.tar")
    size = download(url, f"/api/v1/{'incidents' if incident else 'gpus'}/{name}/bundle", path)
    click.echo(f"{path}: {size} bytes; its README says what is in it and what is missing")
