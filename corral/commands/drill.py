"""``corral drill``: a fault on a virtual GPU."""

import os
from typing import Any

import click

from corral.ask import AGENT, CONTROLLER, ask, json_option
from corral.terminal import say
from vocab.errors import InputError, Unreachable

AGENT_HELP = "The agent's address; unless given, the controller is asked, then the default port is tried."


@click.group(help="Cause a fault on a GPU of a virtual node and see what Corral does about it.")
def command() -> None:
    """The drills."""


def _agent(address: str | None) -> str:
    if address:
        return address
    try:
        nodes = ask(os.environ.get("CORRAL_URL", CONTROLLER), "GET", "/api/v1/nodes")
    except Unreachable:
        return AGENT  # the controller may be down: a drill is a matter of the node alone
    virtual = {str(node["node"]): str(node["address"]) for node in nodes if node.get("virtual") and node.get("address")}
    if len(virtual) == 1:
        return next(iter(virtual.values()))
    if not virtual:
        raise InputError("the fleet has no virtual node, and nothing breaks real hardware on purpose; see `corral up`")
    listed = ", ".join(f"{node} at {address}" for node, address in virtual.items())
    raise InputError(f"the fleet has several virtual nodes: choose one with --agent ADDRESS: {listed}")


def _cause(address: str | None, as_json: bool, body: dict[str, Any]) -> None:
    answer = ask(_agent(address), "POST", "/api/v1/drills", body=body)
    if as_json:
        import msgspec  # only this branch encodes

        say(msgspec.json.encode(answer))
        return
    records = len(answer["kernel_records"])
    what = f"{body['kind']} {body['code']}" if "code" in body else body["kind"]
    told = f"{records} kernel record{'' if records == 1 else 's'} written" if records else "done"
    say(f"{what} on GPU {body['gpu']}: {told}; see: corral explain {body['gpu']}")


DCGM_HELP = """Let the node's DCGM host engine tell a VALUE of a FIELD (by its number) of a GPU.

Whoever asks that engine within the next seconds is told it, so stop other tools that act on DCGM. What Corral hears of
that GPU by DCGM for 45 s is marked as a drill: its events are shown, open nothing, hold nothing and count nowhere.
Fields: 230 an Xid, 310 double-bit errors, 395 a failed row remap."""

agent_option = click.option("--agent", envvar="CORRAL_AGENT_URL", help=AGENT_HELP)
gpu_option = click.option("--gpu", required=True, type=click.IntRange(0), help="The GPU's index on its node.")


@command.command(help="Write the kernel record of an Xid; 79 also makes the GPU fall off the bus.")
@click.argument("code", type=click.IntRange(1, 999))
@gpu_option
@click.option("--pid", type=int, help="The process that the record names.")
@click.option("--process", help="That process's name.")
@agent_option
@json_option
def xid(code: int, gpu: int, pid: int | None, process: str | None, agent: str | None, as_json: bool) -> None:
    """An Xid."""
    _cause(agent, as_json, {"kind": "xid", "code": code, "gpu": gpu, "pid": pid, "process": process})


@command.command(help=DCGM_HELP)
@click.argument("field", type=click.IntRange(1, 65_535))
@click.argument("value", type=float)
@gpu_option
@click.option("--agent", envvar="CORRAL_AGENT_URL", default=AGENT, show_default=True, help="The agent's address.")
@json_option
def dcgm(field: int, value: float, gpu: int, agent: str, as_json: bool) -> None:
    """A field of DCGM's."""
    known = ask(agent, "GET", "/api/v1/node")["gpus"]
    uuid = next((str(one["gpu"]) for one in known if one["index"] == gpu), None)
    if uuid is None:
        raise InputError(f"--gpu: the node has no GPU {gpu}; see `corral status`")
    answer = ask(agent, "POST", "/api/v1/drills", body={"kind": "dcgm", "gpu": uuid, "field": field, "value": value})
    if as_json:
        import msgspec  # only this branch encodes

        say(msgspec.json.encode(answer))
        return
    say(f"field {field} of GPU {gpu} is told as {value:g}; see, within half a minute: corral events")


def _simple(kind: str, text: str) -> None:
    @command.command(name=kind, help=text)
    @gpu_option
    @agent_option
    @json_option
    def _run(gpu: int, agent: str | None, as_json: bool) -> None:
        _cause(agent, as_json, {"kind": kind, "gpu": gpu})


_simple("thermal", "Let the GPU run into its hardware thermal slowdown.")
_simple("ecc", "Count uncorrectable memory errors.")
_simple("corrupt", "Let it compute wrong results that nothing reports; `corral diag` finds them.")
_simple("pcie", "Lose half of the PCIe lanes.")
_simple("remap", "Leave a row remap pending, which a reset applies.")
_simple(
    "clear", "Take the faults from the GPU. What clears only with a reboot stays until a person says `corral release`."
)
