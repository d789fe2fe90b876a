"""``corral``: the entry point. Commands are imported when they are used, so that ``--help`` is quick."""

import importlib
import sys

import click

from corral.manual import told
from vocab.errors import CorralError

COMMANDS = {
    "up": "a whole fleet on this machine: controller, agent, engine replicas, gateway",
    "status": "what state the fleet is in",
    "top": "what every GPU really does, live",
    "events": "what was seen, newest last",
    "versions": "which driver and firmware runs where, and what drifts from its pool",
    "explain": "one GPU's story: evidence, decisions, what comes next",
    "card": "one card's history by serial number: where it was, faults, repairs",
    "lemons": "cards that fail again and again while their peers do not",
    "hold": "take a GPU or node out of service",
    "lift": "lift a hold",
    "drain": "hold a GPU, node or replica and move its work elsewhere",
    "release": "put a GPU back to service after a repair",
    "handover": "what the next shift has to know: what changed, what is open, what comes next",
    "maintain": "work on a node: hold, drain and silence together, until a time",
    "pause": "stop all harmful automation, at once",
    "resume": "let automation act again",
    "bundle": "the evidence of an incident or a GPU in one tar, for the vendor",
    "undo": "take back what automation did lately",
    "discard": "after a look: drop what waits for room, and let demoted rules act again",
    "approve": "allow an action that waits for a person",
    "token": "who may ask: make, list and revoke tokens",
    "enroll": "on a node: trade a one-time token for the node's own",
    "incident": "incidents: list, show, close one and say whether Corral was right",
    "runbook": "what an alert or a code means, and what to do about it",
    "policy": "the policy in force: check, compare, test, adopt and revert",
    "drill": "a fault on a virtual GPU, to see what happens",
    "survey": "what logs and metrics say of a fleet, before anything runs there",
    "scan": "find GPU faults in kernel logs",
    "doctor": "what this node lacks to see its GPUs whole",
    "plan": "how much a model takes and what a GPU gives for it",
    "diag": "check GPUs actively: quick, medium or burn",
    "record": "what a node saw of late, for replay",
    "backup": "all that a controller remembers, as one file",
    "restore": "put a backup in place of what a controller remembers",
    "replay": "play recordings through the whole decision chain",
    "completion": "what bash, zsh or fish needs to complete commands",
}


class Lazy(click.Group):
    """Commands by name from the modules ``corral.commands.NAME``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"corral.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return told(cmd_name, command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(package_name="corral")
def cli() -> None:
    """Corral keeps a fleet of GPUs that serve models honest and serving.

    Commands that ask the controller find it at CORRAL_URL (http://127.0.0.1:7400 unless set) and send the token in
    CORRAL_TOKEN_FILE; at an https address CORRAL_TLS_CA, CORRAL_TLS_CERT and CORRAL_TLS_KEY count.

    Exit codes of all commands: 0 done, 1 found something or the answer is no, 2 wrong usage or input, 3 unreachable,
    4 refused.
    """


def main() -> None:
    """Run the command line; an error of ours is one line on standard error."""
    try:
        code = cli.main(prog_name="corral", complete_var="_CORRAL_COMPLETE", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except CorralError as error:
        click.echo(f"corral: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
