"""``corral backup``: all that a controller remembers, as one file."""

from pathlib import Path

import click

from corral.files import force_option, refuse_to_replace
from corral.terminal import say

CONFIG = Path("/etc/corral/controller.toml")

HELP = """Write all that the controller remembers to FILE, as it is at one moment; controllers go on meanwhile.

The file is the same for SQLite and PostgreSQL, and `corral restore` puts it into either."""

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    default=CONFIG,
    show_default=True,
    help="The controller's configuration, which says where its database is.",
)


@click.command(help=HELP)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@config_option
@force_option
def command(file: Path, config: Path, *, force: bool) -> None:
    """Write the file."""
    refuse_to_replace(file, force=force)
    import asyncio

    from controller.config import read
    from controller.store.backup import backup

    place = read(config).place
    rows = asyncio.run(backup(place, file))
    say(f"{rows} rows of {place} are in {file}")
