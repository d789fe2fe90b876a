"""``corral completion``: what a shell needs to complete commands and options."""

import click
from click.shell_completion import get_completion_class

HELP = """Print the script with which SHELL completes commands and options of `corral`."""
VARIABLE = "_CORRAL_COMPLETE"


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print it; click itself answers when the shell asks."""
    from corral.__main__ import cli

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these three"
    click.echo(_source(kind(cli, {}, "corral", VARIABLE)))


def _source(made: click.shell_completion.ShellComplete) -> str:
    """The script, without a look at the version of the shell that is installed here: it may be another machine's."""
    return made.source_template % made.source_vars()
