"""The journal's other forms, ``journalctl -o export``, ``json-pretty``, ``-seq``, ``-sse``, as the lines of ``json``.

Export: a field a line, ``NAME=VALUE``; one that is no plain text as ``NAME``, its length in eight bytes, and itself; an
empty line between entries. Pretty: one object over several lines. Of a field or an entry that is longer than any kernel
record only the beginning is kept, so a file of any size takes the same memory.
"""

from collections.abc import Iterator
from io import BufferedIOBase

import msgspec

EXPORT, PRETTY = (b"__CURSOR=",), (b"{\n", b"{\r\n")
SEQUENCE = (b"\x1e{", b"data: {")  # what json-seq and json-sse put before each object
FIELDS = frozenset(
    {"MESSAGE", "__REALTIME_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP", "_TRANSPORT", "_HOSTNAME", "SYSLOG_FACILITY"}
    | {"_BOOT_ID"}
)
MOST_FIELD = 256 * 1024  # bytes; kernel records are cut at about one thousand
LENGTH = 8


def exported(stream: BufferedIOBase) -> Iterator[str]:
    """Each entry of the export form."""
    entry: dict[str, str] = {}
    while line := stream.readline(MOST_FIELD):
        name, is_plain, value = line.rstrip(b"\n").partition(b"=")
        if line == b"\n":
            yield from _said(entry)
            entry = {}
            continue
        if not line.endswith(b"\n"):
            _skip_line(stream)
        if not is_plain:
            value = _sized(stream)
        if (key := name.decode(errors="replace")) in FIELDS:
            entry[key] = value.decode(errors="replace")
    yield from _said(entry)


def _said(entry: dict[str, str]) -> Iterator[str]:
    if entry:
        yield msgspec.json.encode(entry).decode()


def _sized(stream: BufferedIOBase) -> bytes:
    """A value with its length before it, and the newline behind it."""
    left = int.from_bytes(stream.read(LENGTH), "little")
    value = b""
    while left > 0 and (part := stream.read(min(left, MOST_FIELD))):
        left -= len(part)
        value = value or part
    stream.read(1)
    return value


def _skip_line(stream: BufferedIOBase) -> None:
    while (part := stream.readline(MOST_FIELD)) and not part.endswith(b"\n"):
        pass


def pretty(stream: BufferedIOBase) -> Iterator[str]:
    """Each object of the pretty form."""
    parts: list[bytes] = []
    size = 0
    while line := stream.readline(MOST_FIELD):
        size += len(line)
        if size <= MOST_FIELD:
            parts.append(line.strip())
        if line.rstrip() == b"}":
            yield b"".join(parts).decode(errors="replace")
            parts, size = [], 0


def sequence(stream: BufferedIOBase) -> Iterator[str]:
    """Each object of the forms that differ from ``json`` only in what stands before it."""
    while line := stream.readline(MOST_FIELD):
        if not line.endswith(b"\n"):
            _skip_line(stream)
        yield line.strip().removeprefix(b"\x1e").removeprefix(b"data: ").decode(errors="replace")
