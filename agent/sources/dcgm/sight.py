"""Whether there is a DCGM on this node to connect to, seen from outside and without its library."""

import asyncio
from pathlib import Path

import msgspec

from agent.sources.dcgm import bindings
from agent.sources.dcgm.engine import EMBEDDED, UNIX
from agent.sources.dcgm.names import explain

AUTO, OFF = "auto", "off"
DEFAULT = "localhost:5555"  # where nvidia-dcgm.service listens
ENGINE_COMMAND = "nv-hostengine"
KNOCK_S = 2.0


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
    return Sight(folder, None if await _answers(settings.address) else "ENGINE_NOT_FOUND")


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
