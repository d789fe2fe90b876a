"""``python -m alerts [--faster N] [--out FOLDER]``: write the rules; without options all generated files here anew."""

from pathlib import Path

import click

from alerts import pages
from alerts.house import GROUPS
from alerts.rules_file import rules_file

REPOSITORY = Path(__file__).parents[1]


@click.command(help="Write the Prometheus rules, and the generated parts of runbooks and of docs/alerts.md.")
@click.option("--faster", default=1, show_default=True, type=click.IntRange(1), help="Divide all durations by this.")
@click.option("--out", type=click.Path(path_type=Path), help="Write only the rules, into this folder.")
def main(faster: int, out: Path | None) -> None:
    """Write what is generated."""
    if faster != 1 and out is None:
        raise click.UsageError("--faster is for rules of your own: name a folder with --out")
    folder = out or REPOSITORY / "alerts" / "rules"
    folder.mkdir(parents=True, exist_ok=True)
    for group in GROUPS:
        path = folder / f"{group.subject}.yml"
        path.write_text(rules_file(group, faster))
        click.echo(path)
    if out is None:
        for path, text in pages.generated(REPOSITORY).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
