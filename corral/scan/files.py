"""Files of kernel log as blocks of whole lines: plain or gzip, standard input; and the journal's own forms.

A file of any size, and a line of any length, takes the same memory.
"""

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from corral.scan.dmesg_form import DMESG, dmesg
from corral.scan.journal_forms import EXPORT, PRETTY, SEQUENCE, exported, pretty, sequence
from vocab.errors import InputError
from vocab.events import rfc3339

_BLOCK = 1 << 20  # bytes read at once
_ENTRIES = 512  # of a journal, handled at once
MAX_LINE = 64 * 1024  # characters that are kept of a line; kernel records are cut at about one thousand
_GZIP = b"\x1f\x8b"
# Forms that would look like a log in which nothing is wrong: how they begin, and what to do.
_FOREIGN = (
    (b"\xfd7zXZ\x00", "it is packed with xz: give the output of xzcat"),
    (b"\x28\xb5\x2f\xfd", "it is packed with zstd: give the output of zstdcat"),
    (b"BZh", "it is packed with bzip2: give the output of bzcat"),
    (b"LPKSHHRH", "it is a journal's own file: give the output of journalctl -k -o json --file"),
    (b"\xff\xfe", "it is UTF-16: give it as UTF-8"),
    (b"\xfe\xff", "it is UTF-16: give it as UTF-8"),
)
_ESCAPE = "\x1b["
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}m")
_KERNEL = frozenset({"kernel", None})  # transports


class Entry(NamedTuple):
    """One line, or one record of a journal. ``at``, ``node``, ``kernel_s`` where the form itself tells them."""

    line: str
    raw: str  # as evidence: the record's own text
    at: float | None = None
    node: str | None = None
    kernel_s: float | None = None
    facility: int | None = None
    source: str | None = None
    boot_id: str | None = None


class _JournalEntry(msgspec.Struct):
    """The fields of a journal entry that matter. MESSAGE is a list of bytes where it is not plain text."""

    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    realtime: str | int | None = msgspec.field(name="__REALTIME_TIMESTAMP", default=None)  # shippers make it a number
    monotonic: str | int | None = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default=None)
    transport: str | None = msgspec.field(name="_TRANSPORT", default=None)
    host: str | None = msgspec.field(name="_HOSTNAME", default=None)
    facility: str | None = msgspec.field(name="SYSLOG_FACILITY", default=None)
    boot_id: str | None = msgspec.field(name="_BOOT_ID", default=None)


_DECODER = msgspec.json.Decoder(_JournalEntry)


def blocks(path: str) -> Iterator[str]:
    """Whole lines of a file (``-``: standard input), joined by newlines. Raises InputError naming path and reason."""
    try:
        with _opened(path) as stream:
            begin = stream.peek(16)[:16]
            if begin.startswith(EXPORT):
                yield from _joined(exported(stream))
            elif stream.peek(64)[:64].split(None, 2)[1:2] == [DMESG]:
                yield from _joined(dmesg(stream))
            elif begin.startswith(PRETTY):
                yield from _joined(pretty(stream))
            elif begin.startswith(SEQUENCE):
                yield from _joined(sequence(stream))
            else:
                yield from _cut(stream)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read: {reason}") from error


@contextmanager
def _opened(path: str) -> Iterator[BufferedReader | gzip.GzipFile]:
    if path == "-":
        yield _unpacked(cast("BufferedReader", sys.stdin.buffer))
        return
    with Path(path).open("rb") as raw:
        yield _unpacked(raw)


def _unpacked(raw: BufferedReader) -> BufferedReader | gzip.GzipFile:
    begin = raw.peek(8)
    for mark, reason in _FOREIGN:
        if begin.startswith(mark):
            raise OSError(reason)
    return gzip.GzipFile(fileobj=raw) if begin.startswith(_GZIP) else raw


def _joined(lines: Iterator[str]) -> Iterator[str]:
    """Blocks of some hundred lines."""
    while block := list(islice(lines, _ENTRIES)):
        yield "\n".join(block)


def _cut(stream: BufferedIOBase) -> Iterator[str]:
    """Blocks that end where a line ends. Of a line that is longer than a block only the beginning is kept."""
    rest = b""
    while block := stream.read1(_BLOCK):
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            yield _plain(rest + head)
            rest = tail
        else:
            rest += tail
        rest = rest[: 4 * MAX_LINE]  # in bytes: four a character at most
    if rest:
        yield _plain(rest)


def _plain(block: bytes) -> str:
    """The text without the colours of ``dmesg --color=always``, a byte order mark, and zeros that a crash left."""
    text = block.decode(errors="replace").removeprefix("\ufeff").replace("\0", "")
    return _COLOUR.sub("", text) if _ESCAPE in text else text


def journal(line: str) -> Entry | None:
    """A line of ``journalctl -o json`` as ``-o short-iso`` would print it; None if it is not the kernel's."""
    try:
        entry = _DECODER.decode(line)
    except msgspec.MsgspecError:
        return None
    if entry.message is None or entry.transport not in _KERNEL:
        return None
    text = entry.message if isinstance(entry.message, str) else _text(entry.message)
    at = _micros(entry.realtime)
    stamp = "" if at is None else f"{rfc3339(at)} {entry.host or 'localhost'} "
    return Entry(
        line=f"{stamp}kernel: {text}",
        raw=text,
        at=at,
        node=entry.host,
        kernel_s=_micros(entry.monotonic),
        facility=int(entry.facility) if entry.facility and entry.facility.isdecimal() else None,
        source="journal",
        boot_id=entry.boot_id,
    )


def _text(message: list[int]) -> str:
    return bytes(number & 0xFF for number in message).decode(errors="replace")


def _micros(text: str | int | None) -> float | None:
    return int(text) / 1e6 if text and str(text).isdecimal() else None
