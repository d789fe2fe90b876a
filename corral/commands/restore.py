"""``corral restore``: a backup in place of what a controller remembers."""

from pathlib import Path

import click

from corral.commands.backup import config_option
from corral.terminal import say

HELP = """Put what is in FILE in place of all that the controllers remember. Stop all of them first.

A new epoch begins, so that no node takes a new order for an old one. What nodes still have on their disks is sent
again and stored once."""


@click.command(help=HELP)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@config_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(file: Path, config: Path, *, yes: bool) -> None:
    """Replace everything."""
    import asyncio
    import time
    from contextlib import nullcontext

    from controller.config import read
    from controller.lock import only_controller
    from controller.store.backup import restore, whole

    made = read(config)
    alone = nullcontext() if made.place.shared else only_controller(Path(made.state_dir))
    with alone:
        whole(file)
        if not yes:
            click.confirm(f"All that is in {made.place} will be replaced. Go on?", abort=True)
        rows = asyncio.run(restore(made.place, file, time.time()))
    say(f"{rows} rows are in {made.place}, under a new epoch; start the controller")
