"""``corral diag``: active checks of GPUs."""

import sys
from typing import TYPE_CHECKING

import click

from corral.ask import AGENT, json_option

if TYPE_CHECKING:
    from rich.console import Console

    from corral.diag.place import Place
    from vocab.diag import DiagRequest
    from vocab.observations import Check

HELP = f"""Check GPUs actively: all of this node, or those that you name (an index, a UUID or a part of one).

\b
quick   seconds, harmless beside serving: it opens, ECC and remap are clean,
        PCIe and NVLink at full width, exact products
medium  a minute or two, on GPUs that are held and empty: memory, copies,
        rate of products, sum over NVLink
burn    minutes of full power, on a node that serves nothing

Where DCGM is installed its diagnostics of level 1, 2 or 3 run too; the last may take an hour. A GPU is held with
`corral drain`. Ctrl-C ends the run.

Asks the agent of the node, as the controller knows it, or at {AGENT}."""

QUIET_S = 4000.0  # DCGM's long level may take an hour, and says nothing meanwhile


@click.command(help=HELP)
@click.argument("gpus", nargs=-1, metavar="[GPU]…")
@click.option("--grade", type=click.Choice(["quick", "medium", "burn"]), default="quick", show_default=True)
@click.option("--yes", is_flag=True, help="Do not ask before a burn.")
@click.option("--agent", envvar="CORRAL_AGENT_URL", help="The agent's address.")
@json_option
def command(gpus: tuple[str, ...], grade: str, agent: str | None, *, yes: bool, as_json: bool) -> int:
    """Run the checks and show what they found."""
    import asyncio

    import msgspec
    from rich.console import Console

    from corral.diag.place import place
    from corral.diag.table import exit_code, show
    from vocab.diag import DiagRequest, Grade

    where = place(agent, gpus)
    wish = DiagRequest(gpus=where.gpus, grade=Grade(grade))
    if wish.grade is Grade.BURN and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("a burn takes full power for minutes on each GPU: confirm it with --yes")
        click.confirm("Full power for minutes on each GPU. Go on?", abort=True)
    found = asyncio.run(_run(where, wish, Console(stderr=True)))
    if as_json:
        told = [{"result": check.result} | msgspec.to_builtins(check) for check in found]  # unknown is said as well
        click.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
    else:
        show(found, Console())
    return exit_code(found)


async def _run(where: "Place", wish: "DiagRequest", progress: "Console") -> "list[Check]":
    """All checks, in their order. Raises Unreachable if the stream breaks off."""
    from corral.ask import tls, token
    from vocab.diag import AnyTold, Checked, Ended, Started
    from vocab.errors import Unreachable
    from wire.client import Client

    found: list[Check] = []
    told: AnyTold
    async with Client(where.agent, token=token(), tls=tls(where.agent)) as client:
        with progress.status("asking the agent …") as status:
            async for told in client.lines("POST", "/api/v1/diag", AnyTold, wish, silence_s=QUIET_S):
                match told:
                    case Started(gpu=gpu, test=test):
                        status.update(f"{gpu.removeprefix('GPU-')[:8]}: {test} …")
                    case Checked(check=check):
                        found.append(check)
                    case Ended():
                        return found
    raise Unreachable(f"{where.agent} broke off before the end; see its log")
