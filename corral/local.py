"""The agent of this node, asked through its socket: when the controller is gone, or one sits on the node alone."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from corral.up.plan import default_state
from vocab.errors import InputError, Unreachable
from vocab.events import Event
from wire.client import Client

SOCKET = Path("/run/corral/agent.sock")
START = "`systemctl start corral-agent` (on a node of `corral up`: `corral up`)"
local_option = click.option("--local", is_flag=True, help="Ask the agent of this node, by its socket.")


def socket() -> Path:
    """Where it is: as CORRAL_AGENT_SOCKET says, of an installed agent, or of `corral up`."""
    named = os.environ.get("CORRAL_AGENT_SOCKET")
    if named:
        return Path(named)
    of_up = default_state() / "run" / "agent.sock"
    return of_up if not SOCKET.exists() and of_up.exists() else SOCKET


def there() -> bool:
    """Whether this node has an agent whose socket can be seen."""
    try:
        return socket().is_socket()
    except OSError:
        return False


def ask_agent(path: str) -> bytes:
    """What the agent answers to a GET, as it came. Raises Unreachable naming what to do."""
    place = socket()

    async def go() -> bytes:
        async with Client("http://this-node", socket=str(place)) as client:
            return await client.fetch("GET", path)

    try:
        return asyncio.run(go())
    except Unreachable as error:
        said = f"the agent's socket {place} does not answer: {hint(getattr(error.__cause__, 'os_error', None))}"
        raise Unreachable(f"{said}, or set CORRAL_AGENT_SOCKET") from error


def hint(fault: OSError | None) -> str:
    """What to do, by why the socket could not be opened; None: it could."""
    match fault:
        case PermissionError():
            return "run as root or as a member of the agent's group"
        case ConnectionRefusedError():
            return f"the agent has stopped and left its socket behind; start it with {START}"
        case FileNotFoundError():
            return f"no agent runs here; start one with {START}"
        case _:
            return "it is there, and says nothing; see `journalctl -u corral-agent`"


def node_now() -> dict[str, Any]:
    """The node as its agent sees it."""
    return msgspec.json.decode(ask_agent("/api/v1/node"), type=dict[str, Any])


def events_now() -> list[Event]:
    """The events of late, oldest first."""
    decoder = msgspec.json.Decoder(Event)
    return [decoder.decode(line) for line in ask_agent("/api/v1/events").splitlines() if line.strip()]


def memory(node: dict[str, Any]) -> str:
    """Since when the agent remembers what it has seen, and where what came before is asked."""
    since = node.get("events_since")
    began = "its start" if since is None else f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%SZ}"
    before = f"the controller {node['controller']['url']} (this command without --local) and `journalctl -k`"
    return f"This agent remembers what it has seen since {began}; what came before is known to {before}."


def gpu_of(node: dict[str, Any], name: str) -> str:
    """The UUID of a GPU of the node: by its index, or a part of the UUID that no other has. Raises InputError."""
    index = name.rpartition("/")[2]
    if index.isdecimal():
        found = [gpu["gpu"] for gpu in node["gpus"] if gpu["index"] == int(index)]
    else:
        found = [gpu["gpu"] for gpu in node["gpus"] if name.lower() in gpu["gpu"].lower()]
    if len(found) != 1:
        raise InputError(f"{name!r} names {len(found)} GPUs of this node; give an index or a part of a UUID")
    return str(found[0])


def instead(error: Unreachable, *, quiet: bool = False) -> None:
    """The controller does not answer: say that this node's agent is asked in its place, or raise the error."""
    if not there():
        raise error
    if not quiet:
        click.echo(f"corral: {error} This node's agent says:", err=True)
