"""The kernel log as the journal keeps it, for a node whose /dev/kmsg may not be read.

``journalctl`` follows it in a process of its own. The records are the same as those of kmsg, by boot, stamp and text,
but have no number of their own; the journal's cursor is the place of reading. It is kept on disk, always some seconds
behind what was judged, so nothing is lost by a crash; what is read twice is known by its stamp. Where journald itself
was too slow it says so (a record with a message id of its own), and that is a gap.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from agent.ending import kill
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.events import rfc3339
from vocab.observations import KernelRecord, SourceState
from wire.backoff import delay_s
from wire.disk import write_durably

log = logging.getLogger(__name__)

MISSED = "e9bf28e6e834481bb6f48f548ad13606"  # systemd/sd-messages.h: SD_MESSAGE_JOURNAL_MISSED
FIELDS = "MESSAGE,MESSAGE_ID,SYSLOG_FACILITY,_SOURCE_MONOTONIC_TIMESTAMP,_BOOT_ID,_HOSTNAME,_TRANSPORT"
AT_ONCE = 256  # records handled before other tasks get a turn
MAX_LINE = 2**20  # the kernel's longest record with its keys is 8 KiB; --all may print it as a list of numbers
SAVE_S = 10.0  # at least so old is the cursor on disk; the judge's own state is saved each 5 s
RETRY_MOST_S = 60.0
FIRST_S = 15.0  # a journal that shows no record of this boot by then may not be read: journalctl is silent about it
STOP_S = 2.0


class Entry(msgspec.Struct, frozen=True):
    """One line of ``journalctl -o json``. MESSAGE is a list of bytes where it is no text."""

    cursor: str | None = msgspec.field(name="__CURSOR", default=None)
    realtime_us: str | None = msgspec.field(name="__REALTIME_TIMESTAMP", default=None)
    monotonic_us: str | None = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default=None)
    boot_id: str | None = msgspec.field(name="_BOOT_ID", default=None)
    host: str | None = msgspec.field(name="_HOSTNAME", default=None)
    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    message_id: str | None = msgspec.field(name="MESSAGE_ID", default=None)
    facility: str | None = msgspec.field(name="SYSLOG_FACILITY", default=None)
    transport: str | None = msgspec.field(name="_TRANSPORT", default=None)


class Place(msgspec.Struct, frozen=True):
    """How far the log of a boot was read, as it lies on disk."""

    boot_id: str
    cursor: str


_entry = msgspec.json.Decoder(Entry).decode
_place = msgspec.json.Decoder(Place).decode


class JournalSource:
    """Emits each kernel record of this boot, and SourceState of the source ``kernel``."""

    name = "journal"

    def __init__(
        self,
        node: str,
        place: Path,
        clock: Clock,
        boot_id: str,
        *,
        command: Sequence[str] = ("journalctl",),
        retry_s: float = 1.0,
        save_s: float = SAVE_S,
        first_s: float = FIRST_S,
    ) -> None:
        self.boot_id = boot_id
        self._node = node
        self._path = place
        self._clock = clock
        self._command = tuple(command)
        self._retry_s = retry_s
        self._save_s = save_s
        self._first_s = first_s
        self._cursor = self._read_place()
        self._saved = self._waiting = self._cursor  # on disk; next to go there
        self._save_at = clock.monotonic()
        self._began_at = 0.0  # wall time from which on records are live
        self._up = False
        self._said: tuple[str, str | None] | None = None

    async def run(self, emit: Emit) -> None:
        """Follow the log until cancelled; a journal that cannot be read is tried again with back-off."""
        attempt = 0
        while True:
            self._up = False
            why = await self._follow(emit)
            attempt = 1 if self._up else attempt + 1
            self._say(emit, "down", why)
            await asyncio.sleep(delay_s(attempt, self._node, first_s=self._retry_s, most_s=RETRY_MOST_S))

    async def _follow(self, emit: Emit) -> str:
        """Run journalctl until it ends; why it did."""
        self._began_at = self._clock.now()
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command,
                *self._arguments(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=MAX_LINE,
            )
        except OSError as error:
            return f"NOT_FOUND: {self._command[0]} cannot be run ({error.strerror}): install systemd's journalctl"
        assert child.stdout is not None
        assert child.stderr is not None
        words = b""
        try:
            if not await self._read(child.stdout, emit):
                return (
                    f"EACCES: journalctl shows no record of the kernel within {self._first_s:g} s: add the agent's user"
                    " to the group systemd-journal, or give the agent CAP_SYSLOG so that it reads /dev/kmsg"
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    words = await child.stderr.read(4096)
                    await child.wait()
        finally:
            await kill(child)
        return self._ended(" ".join(words.decode(errors="replace").split()), child.returncode, emit)

    def _ended(self, words: str, code: int | None, emit: Emit) -> str:
        """Why it did, by its own words; a cursor that it does not know is forgotten."""
        if "cursor" in words.lower() and self._cursor is not None:
            emit(self._record(error="CURSOR_GONE"))
            self._cursor = None
        return _explain(words, code)

    def _arguments(self) -> tuple[str, ...]:
        """From the record that was read last on, which proves that the journal may be read at all."""
        form = ("--output=json", f"--output-fields={FIELDS}", "--all", "--quiet", "--no-pager", "--no-tail", "--follow")
        place = (f"--cursor={self._cursor}",) if self._cursor else ()
        boot = f"_BOOT_ID={self.boot_id.replace('-', '')}"
        return (*form, *place, boot, "_TRANSPORT=kernel", "+", boot, f"MESSAGE_ID={MISSED}")

    async def _read(self, lines: asyncio.StreamReader, emit: Emit) -> bool:
        """Hand on what comes until it ends; False if not even a first line came."""
        handled = 0
        while True:
            try:
                async with asyncio.timeout(None if self._up else self._first_s):
                    line = await lines.readline()
            except TimeoutError:
                return False
            except ValueError:  # longer than the limit, which no record of the kernel is
                log.warning("a line of the journal is too long and was skipped")
                continue
            if not line:
                return True
            if not self._up:
                self._up = True
                self._say(emit, "up")
            self._take(line, emit)
            handled += 1
            if handled % AT_ONCE == 0:
                await asyncio.sleep(0)

    def _take(self, line: bytes, emit: Emit) -> None:
        try:
            entry = _entry(line)
        except msgspec.DecodeError:
            log.warning("a line of the journal cannot be read", extra={"length": len(line)})
            return
        if entry.cursor is not None and entry.cursor == self._cursor:
            return
        if entry.message_id == MISSED:
            emit(self._record(error="EPIPE"))
        elif entry.message is not None and entry.transport in {None, "kernel"} and self._is_of_this_boot(entry):
            emit(self._told(entry, entry.message))
        if entry.cursor:
            self._cursor = entry.cursor
            self._keep()

    def _is_of_this_boot(self, entry: Entry) -> bool:
        return entry.boot_id is None or entry.boot_id == self.boot_id.replace("-", "")

    def _told(self, entry: Entry, message: str | list[int]) -> KernelRecord:
        """The record as ``journalctl -o short-iso`` prints it, with the stamp of the kernel itself."""
        text = message if isinstance(message, str) else bytes(n & 0xFF for n in message).decode(errors="replace")
        at = _seconds(entry.realtime_us)
        stamp = "" if at is None else f"{rfc3339(at)} {entry.host or self._node} "
        return self._record(
            line=f"{stamp}kernel: {text}",
            kernel_s=_seconds(entry.monotonic_us),
            facility=int(entry.facility) if entry.facility and entry.facility.isdecimal() else None,
            backlog=at is not None and at < self._began_at,
        )

    def _record(
        self,
        *,
        line: str | None = None,
        error: str | None = None,
        kernel_s: float | None = None,
        facility: int | None = None,
        backlog: bool = False,
    ) -> KernelRecord:
        return KernelRecord(
            at=self._clock.now(),
            node=self._node,
            source="journal",
            line=line,
            error=error,
            kernel_s=kernel_s,
            facility=facility,
            backlog=backlog,
        )

    # the place of reading

    def _read_place(self) -> str | None:
        with suppress(OSError, msgspec.DecodeError):
            place = _place(self._path.read_bytes())
            return place.cursor if place.boot_id == self.boot_id else None
        return None

    def _keep(self) -> None:
        """Bring to disk where reading was one round ago: what was read since may not be judged to its end."""
        now = self._clock.monotonic()
        if now - self._save_at < self._save_s:
            return
        self._save_at = now
        if self._waiting is not None and self._waiting != self._saved:
            try:
                write_durably(self._path, msgspec.json.encode(Place(self.boot_id, self._waiting)))
                self._saved = self._waiting
            except OSError as error:
                log.warning("the place in the journal is not kept", extra={"error": str(error)})
        self._waiting = self._cursor

    def _say(self, emit: Emit, state: str, error: str | None = None) -> None:
        """Report the source's state if it is news."""
        if (state, error) != self._said:
            self._said = state, error
            emit(SourceState(at=self._clock.now(), node=self._node, source="kernel", state=state, error=error))


def _seconds(text: str | None) -> float | None:
    return int(text) / 1e6 if text and text.isdecimal() else None


def _explain(words: str, code: int | None) -> str:
    """``NAME: text``, with what to do where we know it."""
    if "permission" in words.lower():
        return (
            f"EACCES: journalctl: {words}: add the agent's user to the group systemd-journal, or give the agent"
            " CAP_SYSLOG so that it reads /dev/kmsg"
        )
    return f"ENDED: journalctl ended with {code}: {words or 'it said nothing'}"
