"""Ports that nobody listens on, for programs that cannot be told to choose one themselves."""

import contextlib
import socket


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        doors = [stack.enter_context(socket.socket()) for _ in range(count)]
        for door in doors:
            door.bind(("127.0.0.1", 0))
        return tuple(door.getsockname()[1] for door in doors)
