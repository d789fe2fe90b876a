"""``corral up``: a whole fleet on this machine."""

import asyncio
import contextlib
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.status import Status

from corral.up.house import House
from corral.up.plan import VIRTUAL_BOARD, Plan, default_state, has_gpus
from vocab.errors import CorralError
from vocab.states import Level
from wire.client import Client

REPLICAS_S = 60.0  # a large model takes longer, and a held GPU for ever: then we say so, and where all answer


@click.command(help="Start controller, agent, engine replicas and gateway on this machine; Ctrl-C stops them all.\n\n"
               "Without an NVIDIA driver a virtual node of 8 H100 is used, at level repair. Real GPUs are only "
               "observed unless --level says otherwise.")  # fmt: skip
@click.option("--state", type=click.Path(path_type=Path, file_okay=False),
              help="Folder for database and logs (default: ~/.local/state/corral).")  # fmt: skip
@click.option(
    "--virtual", help=f"Use a virtual node of these boards, for example {VIRTUAL_BOARD}, even with real GPUs."
)
@click.option("--level", type=click.Choice([level.value for level in Level]), help="What automation may do.")
@click.option("--model", default="smollm2", show_default=True, help="Model to serve: a name, a .gguf file or a folder.")
@click.option("--base-port", default=7400, show_default=True, type=click.IntRange(1, 65000),
              help="The controller's port; agent +10, gateway +20, replicas from +30.")  # fmt: skip
def command(state: Path | None, virtual: str | None, level: str | None, model: str, base_port: int) -> int:
    """Run until Ctrl-C."""
    board = virtual or (None if has_gpus() else VIRTUAL_BOARD)
    plan = Plan(
        state=(state or default_state()).absolute(),
        base_port=base_port,
        virtual=board,
        level=Level(level) if level else Level.REPAIR if board else Level.OBSERVE,
        model=model,
    )
    return asyncio.run(_up(plan, Console(highlight=False, soft_wrap=True)))


async def _up(plan: Plan, console: Console) -> int:
    stopped = asyncio.Event()
    failures: list[CorralError] = []

    def fail(error: CorralError) -> None:
        failures.append(error)
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    with console.status("starting controller, agent and gateway …") as status:
        async with House(plan, on_failure=fail).opened():
            status.update("starting replicas: loading the model …")
            welcome = asyncio.create_task(_welcome_when_ready(plan, console, status))
            await stopped.wait()
            welcome.cancel()
            console.print("stopping …")
    if failures:
        raise failures[0]
    return 0


async def _welcome_when_ready(plan: Plan, console: Console, status: Status) -> None:
    all_ready = await _replicas_ready(plan, status)
    status.stop()
    _welcome(plan, console, all_ready=all_ready)


async def _replicas_ready(plan: Plan, status: Status) -> bool:
    deadline = asyncio.get_running_loop().time() + REPLICAS_S
    async with Client(plan.controller) as client:
        while asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(CorralError):
                deployments = (await client.call("GET", "/api/v1/fleet", dict[str, Any]))["deployments"]
                text = ", ".join(f"{each['name']} {each['ready']}/{each['wanted']}" for each in deployments)
                status.update(f"starting replicas: {text} ready …")
                if deployments and all(each["ready"] >= each["wanted"] for each in deployments):
                    return True
            await asyncio.sleep(0.5)
    return False


def _welcome(plan: Plan, console: Console, *, all_ready: bool) -> None:
    if plan.virtual:
        console.print(
            f"[black on yellow] VIRTUAL [/] no real GPU is used: {plan.virtual} on node {plan.node}, level {plan.level}"
        )
    else:
        console.print(f"node {plan.node} with its NVIDIA GPUs, level {plan.level}")
    if not all_ready:
        console.print(f"[yellow]not all replicas are ready yet[/]; see `corral status` and {plan.run}/replicas/*/log")
    console.print(f"  fleet page   {plan.controller}/")
    console.print(f"  chat         {plan.gateway}/v1/chat/completions   (models: chat, pair)")
    console.print(f"  metrics      {plan.controller}/metrics  {plan.agent}/metrics  {plan.gateway}/metrics")
    console.print(f"  logs         {plan.logs}")
    console.print("\nIn another terminal:")
    corral = ("" if plan.base_port == 7400 else f"CORRAL_URL={plan.controller} ") + _itself()
    console.print(f"  {corral} status", markup=False)
    console.print(
        f"  curl -N {plan.gateway}/v1/chat/completions -H 'Content-Type: application/json' \\\n"
        """    -d '{"model": "chat", "stream": true, "temperature": 0.2,\n"""
        """         "messages": [{"role": "user", "content": "What is a GPU?"}]}'""",
        markup=False,
    )
    if plan.virtual:
        console.print(f"  {corral} drill xid 79 --gpu 0 ; {corral} explain 0", markup=False)
    console.print("\nCtrl-C stops everything.")


def _itself() -> str:
    """How this very program is called in another terminal: ``corral``, or its path if PATH finds none or another."""
    started = Path(sys.argv[0]).absolute()
    found = shutil.which("corral")
    return "corral" if started.name != "corral" or (found and Path(found).samefile(started)) else str(started)
