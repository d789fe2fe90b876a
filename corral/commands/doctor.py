"""``corral doctor``: what this node lacks for full sight of its GPUs and for repairs."""

from pathlib import Path

import click

from corral.ask import json_option

CONFIG = Path("/etc/corral/agent.toml")

HELP = """Look at this node: driver, kernel log, DCGM, services, clock, controller, and what an agent lacks to see all.

Best run as the agent's user. It needs no GPU and never waits for a driver."""


@click.command(help=HELP)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The agent's configuration (default: {CONFIG} if there is one).",
)
@json_option
def command(config: Path | None, *, as_json: bool) -> int:
    """Look, and tell."""
    import asyncio

    import msgspec
    from rich.console import Console

    from agent.config import read
    from corral.doctor.facts import Facts
    from corral.doctor.findings import findings
    from corral.doctor.look import defaults, look
    from corral.doctor.table import show
    from vocab.errors import ConfigError

    path = config or (CONFIG if CONFIG.exists() else None)
    facts, chosen = Facts(), defaults()
    if path is not None:
        try:
            chosen = read(path)
            facts = Facts(config=str(path), level=chosen.level.value, virtual=chosen.virtual is not None)
        except ConfigError as error:
            if config is not None:
                raise
            facts = Facts(config=str(path), config_error=str(error))
    found = findings(asyncio.run(look(chosen, facts)))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        show(found, Console())
    return 0 if all(finding.verdict.is_fine for finding in found) else 1
