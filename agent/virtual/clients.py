"""Programs that Corral did not start and that hold a virtual GPU.

A real driver knows who has opened a device. Here such a program says so itself: a file named by its pid in the
folder ``clients`` beside the virtual node's file, for as long as it lives.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

FOLDER = "clients"


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """What one process holds of one GPU, and how busy it keeps it (share of time with a kernel)."""

    gpu: int  # its slot
    used_bytes: int
    utilization: float = 0.0


def clients(folder: Path) -> Iterator[tuple[int, Client]]:
    """(pid, what it holds) of each program that has said so; a file that is being written says nothing yet."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        with suppress(OSError, msgspec.DecodeError):
            if path.name.isdigit():
                yield int(path.name), msgspec.json.decode(path.read_bytes(), type=Client)
