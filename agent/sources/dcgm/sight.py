"""Whether there is a DCGM on this node to connect to, seen from outside and without its library."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent.sources.dcgm import bindings
from agent.sources.dcgm.engine import EMBEDDED, UNIX
from agent.sources.dcgm.names import explain

AUTO, OFF = "auto", "off"
DEFAULT = "localhost:5555"  # where nvidia-dcgm.service listens
ENGINE_COMMAND = "nv-hostengine"
KNOCK_S = 2.0
ROOT = 0
LISTENERS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENS = "0A"  # state of a socket (net/tcp_states.h)


class DcgmSettings(msgspec.Struct, frozen=True):
    """``engine``: auto, off, embedded, HOST:PORT or unix://PATH. See docs/install.md."""

    engine: str = AUTO
    bindings: Path | None = None
    profiling: str = "auto"

    @property
    def address(self) -> str:
        """What to connect to."""
        return DEFAULT if self.engine == AUTO else self.engine


class Sight(msgspec.Struct, frozen=True):
    """What was found: the folder of the bindings, and the reason why DCGM cannot be used, if it cannot."""

    bindings: Path | None
    error: str | None = None

    @property
    def advice(self) -> str:
        """For a person: what is missing and how to get it."""
        return explain(self.error) if self.error else "DCGM is there"


async def look(settings: DcgmSettings) -> Sight:
    """Look for bindings and engine; connects for a moment and asks nothing."""
    folder = bindings.find(settings.bindings)
    if folder is None:
        return Sight(None, "BINDINGS_NOT_FOUND")
    if settings.address == EMBEDDED:
        return Sight(folder, "ENGINE_RUNNING" if _runs_here() or await _answers(DEFAULT) else None)
    if not await _answers(settings.address):
        return Sight(folder, "ENGINE_NOT_FOUND")
    if settings.engine == AUTO and not is_trusted(int(DEFAULT.rpartition(":")[2])):
        return Sight(folder, "ENGINE_NOT_TRUSTED")
    return Sight(folder)


def is_trusted(port: int, tables: Sequence[Path] = LISTENERS) -> bool:
    """Whether root or our own user listens there: what any user may run must not tell us of faults unasked."""
    owners = set()
    for table in tables:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            _, local, _, state, _, _, _, owner, *_ = line.split()
            if state == LISTENS and int(local.rpartition(":")[2], 16) == port:
                owners.add(int(owner))
    return bool(owners) and owners <= {ROOT, os.getuid()}


async def _answers(address: str) -> bool:
    """Whether somebody listens there."""
    try:
        async with asyncio.timeout(KNOCK_S):
            if address.startswith(UNIX):
                _, writer = await asyncio.open_unix_connection(address.removeprefix(UNIX))
            else:
                host, _, port = address.rpartition(":")
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _runs_here() -> bool:
    """Whether a host engine of any address runs on this machine."""
    for command in Path("/proc").glob("[0-9]*/comm"):
        try:
            if command.read_text().strip() == ENGINE_COMMAND:
                return True
        except OSError:
            continue  # it has just ended
    return False
