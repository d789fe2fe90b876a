"""The command itself: files in; parse objects, events or a table out; counts on standard error; an exit code."""

import time
from collections.abc import Iterator, Sequence
from typing import TextIO

import msgspec

from agent.kernel.parsed import Parsed, Prefix
from agent.kernel.parser import Parser
from agent.kernel.prefix import split
from agent.kernel.stamps import Stamps, zone
from corral.jsonl import one_line
from corral.scan.files import Entry, blocks, journal
from corral.scan.judged import SOURCES, Judged
from corral.scan.sieve import Sieve
from corral.scan.table import HEADER, line
from vocab.errors import InputError
from vocab.events import Event, Severity

CLEAN, FOUND, UNREADABLE = 0, 1, 2

_NO_PREFIX = Prefix(kind="none")
_UNKNOWN_NODE = "unknown"  # a log that names no host


def scan(
    paths: Sequence[str],
    mode: str,
    tz: str | None,
    now: float | None,
    boot_time: float | None,
    out: TextIO,
    err: TextIO,
) -> int:
    """Scan kernel logs. ``mode``: ``parse`` (a parse object a record), ``json`` (an Event a line) or ``text``.

    Times are seconds since the epoch; ``now`` None is the machine's. Returns 0 if nothing bad is in them, 1 if an error
    or critical event is that nobody injected, 2 if a file could not be read (the others are still printed).
    """
    stamps = Stamps(zone(tz), time.time() if now is None else now, boot_time)
    report = _Report(mode, out)
    unreadable = False
    for path in paths:
        reader = _Reader(stamps, parses=mode == "parse")
        try:
            report.file(reader, path)
        except InputError as error:
            unreadable = True
            print(f"corral scan: {error}", file=err)
        if reader.began:
            print(f"{path}: {reader.counts()}", file=err)
    return UNREADABLE if unreadable else FOUND if report.bad else CLEAN


class _Report:
    """What is printed, and whether it was bad."""

    def __init__(self, mode: str, out: TextIO) -> None:
        self.bad = False
        self._mode = mode
        self._out = out
        self._began = False

    def file(self, reader: "_Reader", path: str) -> None:
        """Print one file. What was read before it broke is printed as well."""
        for found in reader.read(path):
            if isinstance(found, Parsed):
                if self._mode == "parse":
                    self._print(found.to_json())
                continue
            self.bad = self.bad or (found.severity.rank >= Severity.ERROR.rank and not found.injected)
            if self._mode == "json":
                self._print(found)
            elif self._mode == "text":
                self._row(found)

    def _print(self, document: object) -> None:
        self._out.write(one_line(msgspec.json.encode(document)))

    def _row(self, event: Event) -> None:
        if not self._began:
            self._began = True
            self._out.write(HEADER + "\n")
        self._out.write(line(event) + "\n")


class _Reader:
    """Reads one file and counts. ``parses``: all records are wanted, else only their number."""

    def __init__(self, stamps: Stamps, *, parses: bool) -> None:
        self._stamps = stamps
        self._parses = parses
        self._parser = Parser()
        self._judged = Judged()
        self._lines = 0
        self._ended = False

    @property
    def began(self) -> bool:
        """Whether the file had a first line, or ended without one."""
        return self._lines > 0 or self._ended

    def counts(self) -> str:
        """Lines, records, and what looks like an Xid and could not be parsed."""
        parser = self._parser
        return f"{self._lines} lines, {parser.parsed} parsed, {parser.unparsed} like an Xid that could not be parsed"

    def read(self, path: str) -> Iterator[Parsed | Event]:
        """Records when they are whole, events when they are over. Raises InputError after what could be read."""
        broken: InputError | None = None
        try:
            for block in blocks(path):
                yield from self._block(Sieve(block))
        except InputError as error:
            broken = error
        yield from self._parser.flush()
        yield from self._judged.close()
        if broken:
            raise broken
        self._ended = True

    def _block(self, sieve: Sieve) -> Iterator[Parsed | Event]:
        self._lines += sieve.lines
        yield from self._go_on(sieve)  # with a record that was held at the end of the last block
        for text in sieve.interesting():
            yield from self._take(text)
            if self._parser.holding:
                yield from self._go_on(sieve)

    def _go_on(self, sieve: Sieve) -> Iterator[Parsed | Event]:
        """While a record is held, the very next line may belong to it."""
        while self._parser.holding and (text := sieve.following()) is not None:
            yield from self._take(text)

    def _take(self, text: str) -> Iterator[Parsed | Event]:
        entry = journal(text) if text.startswith("{") else Entry(text, text)
        if entry is None:
            yield from self._parser.feed("")
            return
        if self._parses or not self._parser.passes(entry.line):
            yield from self._parser.feed(entry.line)
        found = split(entry.line)
        prefix = found[0] if found else _NO_PREFIX
        yield from self._judged.take(
            entry.raw,
            source=entry.source or SOURCES.get(prefix.kind, "dmesg"),
            node=entry.node or prefix.host or _UNKNOWN_NODE,
            at=self._stamps.at(prefix) if entry.at is None else entry.at,
            kernel_s=prefix.uptime_s if entry.kernel_s is None else entry.kernel_s,
            facility=entry.facility if prefix.priority is None else prefix.priority >> 3,
            boot_id=entry.boot_id,
        )
