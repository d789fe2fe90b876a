"""``corral survey``: what logs and metrics say of a fleet, before anything of Corral runs there."""

from pathlib import Path

import click

from vocab.errors import InputError

HELP = """Survey a fleet from its logs and metrics, and report: GPUs that should be out of service now, lemons, faults
that were missed, what Corral would have done and what that costs, GPUs that were idle at full utilization.

Nothing is installed, started or changed. PATHS are kernel logs or journals in any form, plain or gzip, or folders of
them: one file or one folder a node, or lines that name their host. Prometheus is asked for the series of dcgm-exporter
and of vLLM; a token for it is taken from CORRAL_PROMETHEUS_TOKEN_FILE."""
FORMATS = ("markdown", "html", "json")
BY_SUFFIX = {".md": "markdown", ".html": "html", ".htm": "html", ".json": "json"}


@click.command(help=HELP)
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--ssh", "hosts", multiple=True, metavar="HOSTS", help="Hosts, with commas between, or @FILE.")
@click.option("--prometheus", metavar="URL", help="A Prometheus with dcgm-exporter and vLLM.")
@click.option("--days", type=click.FloatRange(0.05, 366), default=30.0, show_default=True,
              help="How far back hosts and Prometheus are asked.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file; left out: printed.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Left out: by the file's name, else markdown.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--force", is_flag=True, help="Replace the file if there is one.")
@click.option("--gpus-per-node", type=click.IntRange(1, 64), default=8, show_default=True,
              help="Where nothing names more of them.")  # fmt: skip
@click.option("--tz", help="Time zone of stamps that name none (default: UTC).")
@click.option("--jobs", type=click.IntRange(0, 512), default=0, help="Processes (default: one a core).")
def command(paths: tuple[str, ...], hosts: tuple[str, ...], prometheus: str | None, days: float, output: Path | None,
            form: str | None, gpus_per_node: int, tz: str | None, jobs: int, *, as_json: bool,
            force: bool) -> int:  # fmt: skip
    """Read, judge, and write the report."""
    from corral.files import refuse_to_replace
    from corral.progress import told
    from corral.survey.run import Wish, survey
    from corral.survey.ssh import hosts as named
    from corral.survey.write import written

    if output is not None:
        refuse_to_replace(output, force=force)
    wish = Wish(paths=paths, hosts=tuple(named(hosts)), prometheus=prometheus, days=days, tz=tz,
                gpus_per_node=gpus_per_node, jobs=jobs)  # fmt: skip
    with told() as tell:
        found = survey(wish, tell)
    chosen = "json" if as_json else form or BY_SUFFIX.get(output.suffix.lower() if output else "", "markdown")
    text = written(found, chosen)
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{output} cannot be written: {error.strerror}") from error
        from corral.survey.sections import headline

        click.echo(f"{output}: {headline(found)}")
    for why in found.unread:
        click.echo(f"corral survey: not read: {why}", err=True)
    return 1 if found.standing else 0
