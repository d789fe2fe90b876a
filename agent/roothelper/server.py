"""The helper's socket: one connection, one request, one reply. Only who ``heard`` names is heard, by pid and user.

Each caller has a thread, so that none waits for one that is stuck, or for its long deed; which deeds may overlap is for
``duty`` to say. A caller that is silent or slow is dropped.
"""

import logging
import socket
import struct
import threading
import time
from collections.abc import Callable

from agent.roothelper.requests import MOST_BYTES, AnyReply, AnyRequest, Denied, encoded, request_of
from vocab.errors import InputError

log = logging.getLogger(__name__)

MOST_CALLERS = 32  # the agent has a handful at a time
CALLER_S = 2.0  # for the whole request line: it is one write of a local process
Heard = Callable[[int, int], bool]  # (pid, uid) as the kernel knows them
Perform = Callable[[AnyRequest], AnyReply]
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: struct ucred of Linux


def serve(door: socket.socket, heard: Heard, perform: Perform, idle_s: float | None) -> None:
    """Serve until nobody has come for ``idle_s`` (None: for ever). The caller owns the listening socket."""
    door.settimeout(idle_s)
    callers: list[threading.Thread] = []
    while True:
        try:
            connection, _ = door.accept()
        except TimeoutError:
            callers = [each for each in callers if each.is_alive()]
            if callers:
                continue
            return
        callers = [each for each in callers if each.is_alive()]
        if len(callers) >= MOST_CALLERS:
            log.warning("a caller was turned away: too many at once")
            connection.close()
            continue
        callers.append(threading.Thread(target=_attend, args=(connection, heard, perform), name="caller"))
        callers[-1].start()


def _attend(connection: socket.socket, heard: Heard, perform: Perform) -> None:
    with connection:
        try:
            answer(connection, heard, perform)
        except OSError as error:  # the caller went away or was too slow: its own loss
            log.warning("a caller was dropped", extra={"error": str(error)})


def answer(connection: socket.socket, heard: Heard, perform: Perform) -> None:
    """Serve one connection. Raises OSError if its caller goes away."""
    pid, caller, _ = peer(connection)
    if not heard(pid, caller):
        log.warning("a stranger was turned away", extra={"pid": pid, "uid": caller})
        connection.settimeout(CALLER_S)
        connection.sendall(encoded(Denied(why=f"pid {pid} of user {caller} has no business here")))
        return
    line = _line(connection)
    if not line:  # somebody looked whether we listen
        return
    try:
        reply = perform(request_of(line))
    except InputError as error:
        reply = Denied(why=str(error))
    connection.settimeout(CALLER_S)
    connection.sendall(encoded(reply))


def peer(connection: socket.socket) -> tuple[int, int, int]:
    """The pid, uid and gid of the process at the other end, as the kernel knows them."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(raw)
    return pid, uid, gid


def _line(connection: socket.socket) -> bytes:
    """Up to the line's end, the caller's end, or one byte more than a request may have. Raises OSError."""
    deadline = time.monotonic() + CALLER_S
    line = b""
    while b"\n" not in line and len(line) <= MOST_BYTES:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        piece = connection.recv(8192)
        if not piece:
            break
        line += piece
        if time.monotonic() >= deadline:
            raise TimeoutError("the request did not come in time")
    return line.partition(b"\n")[0]
