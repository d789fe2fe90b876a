"""How a source that reads in a child process is: figures for its metrics, written by whoever keeps the child."""

import msgspec


class Health(msgspec.Struct):
    """``starts`` of children so far; ``read_s`` the longest read of a GPU in the last round; ``call_s`` for how long
    the slowest call under way has run beyond what it waits by intent."""

    starts: int = 0
    read_s: float = 0.0
    call_s: float = 0.0
