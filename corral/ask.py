"""How commands ask a process: the address, token and certificates of the environment, one request, its answer decoded.

``CORRAL_URL``, ``CORRAL_TOKEN_FILE``; for TLS ``CORRAL_TLS_CA`` (whom to trust), ``CORRAL_TLS_CERT`` and
``CORRAL_TLS_KEY`` (what to show where callers are asked for a certificate).
"""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import click

from corral.words import in_commands
from vocab.errors import InputError, Refused, Unreachable
from wire.client import Client
from wire.server import read_token
from wire.tls import Contexts, Tls

T = TypeVar("T")

CONTROLLER = "http://127.0.0.1:7400"
AGENT = "http://127.0.0.1:7410"

url_option = click.option(
    "--url", envvar="CORRAL_URL", default=CONTROLLER, show_default=True, help="The controller's address."
)
GPU_NAMES = (
    "A GPU is named by its UUID, a part of one that no other has, NODE/INDEX, or its index where only one GPU has it"
    " (see `corral status`)."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def ask(url: str, method: str, path: str, kind: type[T] | Any = Any, body: Any = None, **query: Any) -> Any:
    """One request to the process at ``url``; raises Unreachable, Refused or InputError."""
    return _at(url, lambda client: client.call(method, path, kind, body, **query))


def without_login(url: str) -> str:
    """The address for people: no name and password in it."""
    return Client(url).base


def ask_lines(url: str, method: str, path: str, body: Any, hear: Callable[[Any], None]) -> None:
    """As ``ask``, of an answer of JSON Lines: each is heard as it comes. Raises as ``ask`` does."""

    async def go(client: Client) -> None:
        async for line in client.lines(method, path, Any, body):
            hear(line)

    _at(url, go)


def ask_as(url: str, bearer: str, method: str, path: str, kind: type[T], body: Any) -> T:
    """As ``ask``, with another token than that of the environment."""
    return _at(url, lambda client: client.call(method, path, kind, body), bearer)


def fetch_of_agent(url: str, path: str, *, timeout_s: float = 60.0) -> bytes:
    """What the agent at ``url`` answers to a GET, as it came; raises as ``ask`` does."""
    return _at(url, lambda client: client.fetch("GET", path, timeout_s=timeout_s), by="CORRAL_AGENT_URL or --agent")


def download(url: str, path: str, file: Path, *, silence_s: float = 90.0) -> int:
    """Write what the process answers to a GET into ``file``, as it comes; its bytes. Whole, or not at all."""
    part = file.with_name(f"{file.name}.part")

    async def go(client: Client) -> int:
        try:
            size = 0
            with part.open("wb") as out:
                async for chunk in client.chunks(path, silence_s=silence_s):
                    size += out.write(chunk)
            part.replace(file)
            return size
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}") from error
        finally:
            part.unlink(missing_ok=True)

    return _at(url, go)


def _at(
    url: str, question: Callable[[Client], Awaitable[T]], shown: str | None = None, *, by: str = "CORRAL_URL or --url"
) -> T:
    if not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
        raise InputError(f"{url!r} is not an address like {CONTROLLER}; set {by}")

    async def go() -> T:
        async with Client(url, token=shown or token(), tls=tls(url)) as client:
            return await question(client)

    try:
        return asyncio.run(go())
    except Unreachable as error:
        told = in_commands(str(error))
        if isinstance(error.__cause__, aiohttp.ClientSSLError):
            raise Unreachable(f"{told}. Set CORRAL_TLS_CA to the authority of its certificate.") from error
        raise Unreachable(f"{told}. Is it running? Start one with `corral up`, or set {by}.") from error
    except (Refused, InputError) as error:
        raise type(error)(in_commands(str(error))) from error


def token(variable: str = "CORRAL_TOKEN_FILE") -> str | None:
    """What the file holds that this variable names, if it names one. Raises ConfigError if others may read it."""
    token_file = os.environ.get(variable)
    return read_token(Path(token_file) if token_file else None)


def tls(url: str) -> ssl.SSLContext | None:
    """What to show and whom to trust at an https address, by the environment. Raises ConfigError."""
    if not url.startswith("https://"):
        return None
    authority, cert, key = (os.environ.get(f"CORRAL_TLS_{name}") for name in ("CA", "CERT", "KEY"))
    files = Tls(
        ca=Path(authority) if authority else None,
        cert=Path(cert) if cert else None,
        key=Path(key) if key else None,
    )
    return Contexts(files).client


def find_gpu(url: str, name: str) -> str:
    """The UUID of the GPU that ``name`` stands for: a UUID, a unique part of one, NODE/INDEX, or a unique index."""
    return gpu_in(ask(url, "GET", "/api/v1/fleet"), name)


def gpu_in(fleet: dict[str, Any], name: str) -> str:
    """As ``find_gpu``, in what the controller has said already. Raises InputError."""
    gpus = [(node["node"], gpu) for node in fleet["nodes"] for gpu in node["gpus"]]
    if name.isdecimal():
        found = [gpu["uuid"] for _, gpu in gpus if gpu["index"] == int(name)]
    else:
        node, _, rest = name.rpartition("/")
        found = [
            gpu["uuid"]
            for host, gpu in gpus
            if (node and host == node and rest == str(gpu["index"]))
            or (not node and name.lower() in gpu["uuid"].lower())
        ]
    if len(found) == 1:
        return str(found[0])
    what = "no GPU" if not found else f"{len(found)} GPUs"
    raise InputError(
        f"{name!r} names {what}; give a UUID, a part of one, an index, or NODE/INDEX (see `corral status`)"
    )
