"""Files that survive a crash: written beside, synced, renamed."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write every byte: a disk that is nearly full takes a part and says so only at the next call. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def write_durably(path: Path, data: bytes, *, mode: int = 0o640) -> None:
    """Replace ``path`` with ``data``: after a crash it holds the old bytes or the new, never a mix."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(handle, data)
        os.fsync(handle)
    except OSError:
        beside.unlink()  # a full disk needs the room
        raise
    finally:
        os.close(handle)
    beside.replace(path)
    sync_folder(path.parent)
