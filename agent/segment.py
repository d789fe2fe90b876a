"""One file of the spool: records one after another, each with its length and checksum.

A record is ``length u32 | crc32 u32 | body``, little endian; the body is MessagePack. The first record is
a Head, so that each file stands alone. Reading ends at the first record that is torn or damaged.
"""

import os
import struct
from pathlib import Path
from zlib import crc32

import msgspec

_FRAME = struct.Struct("<II")
MOST_BYTES = 2**20  # of one segment: small enough to delete soon, large enough to write few
SUFFIX = ".seg"


class Head(msgspec.Struct, frozen=True, tag="head"):
    """The first record of a segment. ``base``: nothing before this segment counts any more."""

    next: int
    acked: int
    dropped: int
    state: bytes | None
    base: bool = False


class Entry(msgspec.Struct, frozen=True, tag="entry"):
    """Items as JSON by position, and the state after them (None: as before)."""

    items: tuple[tuple[int, bytes], ...]
    state: bytes | None = None


class Ack(msgspec.Struct, frozen=True, tag="ack"):
    """The controller has everything up to this position on its disk."""

    position: int


Record = Head | Entry | Ack
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Record)


def frame(record: Record) -> bytes:
    """The bytes of one record."""
    body = _ENCODER.encode(record)
    return _FRAME.pack(len(body), crc32(body)) + body


def read(raw: bytes) -> tuple[list[Record], int]:
    """The whole records at the start of ``raw``, and where the first bad byte is (its length if none)."""
    records: list[Record] = []
    at = 0
    while at + _FRAME.size <= len(raw):
        length, checksum = _FRAME.unpack_from(raw, at)
        body = raw[at + _FRAME.size : at + _FRAME.size + length]
        if length == 0 or len(body) < length or crc32(body) != checksum:
            break
        try:
            records.append(_DECODER.decode(body))
        except msgspec.DecodeError:  # written by another version
            break
        at += _FRAME.size + length
    return records, at


class Segment:
    """One segment file; ``last`` is the highest position in it (0: none), ``size`` its good bytes."""

    def __init__(self, path: Path, last: int = 0, size: int = 0) -> None:
        self.path = path
        self.last = last
        self.size = size
        self._handle: int | None = None

    @property
    def number(self) -> int:
        """Its place in the order of segments."""
        return int(self.path.stem)

    def open(self) -> None:
        """Make ready to append after its good bytes; whatever stands behind them is cut off."""
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        os.ftruncate(self._handle, self.size)
        os.lseek(self._handle, self.size, os.SEEK_SET)

    def append(self, data: bytes) -> None:
        """Add bytes at the end, all or none. Raises OSError if the disk takes no more."""
        assert self._handle is not None, "open the segment first"
        try:
            written = os.write(self._handle, data)
            if written < len(data):
                raise OSError(28, "the disk took only a part of a record")
        except OSError:
            os.ftruncate(self._handle, self.size)
            os.lseek(self._handle, self.size, os.SEEK_SET)
            raise
        self.size += len(data)

    def twin(self) -> int:
        """A handle of its own to the same file, for a thread that syncs it; the caller closes it."""
        assert self._handle is not None, "open the segment first"
        return os.dup(self._handle)

    def sync(self) -> None:
        """Wait until all its bytes are on disk."""
        assert self._handle is not None, "open the segment first"
        os.fsync(self._handle)

    def close(self) -> None:
        """Stop appending."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def delete(self) -> None:
        """Remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)


def name(number: int) -> str:
    """The file name of a segment."""
    return f"{number:012d}{SUFFIX}"
