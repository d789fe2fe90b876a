"""The command itself: files in; parse objects, events or a table out; counts on standard error; an exit code."""

import time
from collections.abc import Sequence
from typing import TextIO

import msgspec

from agent.kernel.parsed import Parsed
from agent.kernel.stamps import Stamps, zone
from corral.jsonl import one_line
from corral.scan.reader import Reader
from corral.scan.table import header, line
from corral.terminal import Out, columns
from vocab.errors import InputError
from vocab.events import Event, Severity

CLEAN, FOUND, UNREADABLE = 0, 1, 2


def scan(
    paths: Sequence[str],
    mode: str,
    tz: str | None,
    now: float | None,
    boot_time: float | None,
    out: Out,
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
        reader = Reader(stamps, parses=mode == "parse")
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

    def __init__(self, mode: str, out: Out) -> None:
        self.bad = False
        self._mode = mode
        self._out = out
        self._began = False

    def file(self, reader: Reader, path: str) -> None:
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
            self._out.write(header(columns()) + "\n")
        self._out.write(line(event, columns()) + "\n")
