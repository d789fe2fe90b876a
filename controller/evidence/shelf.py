"""The bundles that were written by themselves: one tar each, and beside it what it is. A bounded folder.

A tar is whole or not there. The oldest go when they are too many or too large.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from wire.disk import write_durably

MOST = 50
MOST_BYTES = 2 * 2**30  # of all; one has tens of megabytes
MOST_ONE = 512 * 2**20


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle. ``of``: what it is about; ``at``: when that was quarantined, ``packed_at``: when it was packed last.

    ``missing``: what could not be had, as in its README. ``waits_for``: nodes that did not answer; it is packed anew
    once they do.
    """

    id: str
    of: str
    incident: str | None
    subject: str
    at: float
    packed_at: float
    bytes: int = 0
    missing: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    tries: int = 1


class Shelf:
    """The folder. Its methods work on the disk at once and raise OSError; they are for a thread of their own."""

    def __init__(self, folder: Path, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most = most
        self.most_bytes = most_bytes

    def listed(self) -> list[Bundle]:
        """All of them, newest first."""
        found = []
        for path in self._folder.glob("b-*.json") if self._folder.is_dir() else ():
            with contextlib.suppress(OSError, msgspec.DecodeError):  # another one is put in its place, or it is none
                found.append(msgspec.json.decode(path.read_bytes(), type=Bundle))
        return sorted(found, key=lambda each: (each.at, each.id), reverse=True)

    def find(self, name: str) -> tuple[Bundle, Path] | None:
        """One of them, and its tar."""
        bundle = next((each for each in self.listed() if each.id == name), None)
        path = self._folder / f"{name}.tar"
        return (bundle, path) if bundle is not None and path.is_file() else None

    def begin(self, name: str) -> Path:
        """Where its tar is written until it is whole."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for left in self._folder.glob(".b-*.part"):  # of a controller that was killed; one is written at a time
            left.unlink()
        return self._folder / f".{name}.part"

    def finish(self, part: Path, bundle: Bundle) -> None:
        """It is whole: the tar first, then what says that it is there; then what is too much goes."""
        part.replace(self._folder / f"{bundle.id}.tar")
        write_durably(self._folder / f"{bundle.id}.json", msgspec.json.encode(bundle))
        total = 0
        for nth, each in enumerate(self.listed()):
            total += each.bytes
            if each.id != bundle.id and (nth >= self._most or total > self.most_bytes):
                (self._folder / f"{each.id}.json").unlink(missing_ok=True)
                (self._folder / f"{each.id}.tar").unlink(missing_ok=True)


async def poured(chunks: AsyncIterator[bytes], part: Path) -> int:
    """Write a tar and have it on the disk; its bytes. Raises OSError, also if it grows too large."""
    size = 0
    with part.open("wb") as file:
        async for chunk in chunks:
            size += len(chunk)
            if size > MOST_ONE:
                raise OSError(f"the bundle has more than {MOST_ONE} bytes")
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return size
