"""The agent's own door on its node: a Unix socket for who may see it, without a token. For ``corral`` when all else is
gone.

Whom it lets in is the file's owner, its group and root: connecting needs the right to write to the file, which the
kernel checks by the caller's credentials.
"""

import asyncio
import logging
import os
import socket
from pathlib import Path

from aiohttp import web

NAME = "agent.sock"
MODE = 0o660
MOST_PATH = 107  # bytes of a socket's path on Linux

log = logging.getLogger(__name__)


async def open_door(app: web.Application, run_dir: Path) -> web.AppRunner | None:
    """Serve ``app`` at ``agent.sock`` in ``run_dir``; None, and a warning, where that cannot be had.

    An agent without it works as well: the node's tools then ask its address.
    """
    path = run_dir / NAME
    if len(str(path.absolute()).encode()) > MOST_PATH:
        log.warning("no socket for tools on this node: its path would be too long", extra={"path": str(path)})
        return None
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
    await runner.setup()
    try:
        door = await asyncio.to_thread(bound, path)
        await web.SockSite(runner, door).start()
    except OSError as error:
        await runner.cleanup()
        log.warning("no socket for tools on this node: %s", error.strerror or error, extra={"path": str(path)})
        return None
    return runner


def bound(path: Path) -> socket.socket:
    """A socket that nobody else can open at any moment: its mode is on it before it has a name. Raises OSError."""
    if path.is_socket():
        path.unlink()  # of an agent that was killed
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(door.fileno(), MODE)  # Linux takes the name's mode from here, less the umask
        door.bind(str(path))
        path.chmod(MODE)
    except BaseException:
        door.close()
        raise
    door.setblocking(False)
    return door
