"""``corral replay``: recordings through the whole decision chain."""

from pathlib import Path

import click


@click.command(help="Play recordings (JSON Lines) through probes, judgement, policy and budget in virtual time, and "
               "print each decision. The same input gives the same bytes.")  # fmt: skip
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the lines as JSON.")
@click.option("--policy", type=click.Path(path_type=Path), help="Differences from the built-in policy (TOML).")
@click.option("--metrics", is_flag=True, help="Print what /metrics would say at the end instead.")
def command(files: tuple[Path, ...], as_json: bool, policy: Path | None, metrics: bool) -> int:
    """Replay."""
    import sys  # the streams are bound when the command runs

    from corral.replay import replay  # the decision chain is loaded only for this command
    from corral.terminal import Fitted

    out = sys.stdout if as_json or metrics else Fitted(sys.stdout)
    return replay(list(files), policy, metrics=metrics, as_json=as_json, out=out, err=sys.stderr)
