"""Which port a new replica listens on.

A port whose last owner ended a short while ago is avoided: a gateway may still know it under that name.
"""

import socket
from collections.abc import Callable, Collection

from vocab.errors import Refused

SPAN = 1000  # ports looked at from the base upward
RESTS_S = 120.0  # longer than any gateway keeps a replica that nobody lists


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the engine's own server does
        try:
            door.bind((host, port))
        except OSError:
            return False
    return True


def choose(base: int, taken: Collection[int], resting: Collection[int], free: Callable[[int], bool] = is_free) -> int:
    """The lowest free port from ``base`` that no record names, one that does not rest if there is any."""
    span = [port for port in range(base, min(base + SPAN, 65536)) if port not in taken]
    fresh = next((port for port in span if port not in resting and free(port)), None)
    found = fresh if fresh is not None else next((port for port in span if free(port)), None)
    if found is None:
        raise Refused(f"replica_base_port: no free port from {base} to {base + SPAN - 1}; choose another base")
    return found
