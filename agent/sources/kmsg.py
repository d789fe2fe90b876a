"""The kernel log, one record a read, followed live: the real /dev/kmsg or a virtual node's own.

Records that were there when reading began are the backlog; from the first moment without a record on, the
rest is live. A gap in the numbering is reported where it is met, once. The caller keeps ``position`` on
disk and hands it back as ``after_seq``; it is worth something only within the same boot.
"""

import asyncio
import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from agent.sources.source import Emit
from agent.virtual import layout
from agent.virtual.state import VirtualState
from vocab.clock import Clock
from vocab.observations import KernelRecord, SourceState
from wire.backoff import delay_s

MAX_RECORD = 16384  # the kernel's longest record with its keys is 8 KiB
AT_ONCE = 256  # records handled before other tasks get a turn
POLL_S = 0.2  # for records that another process writes into a virtual log; our own ring its bell
RETRY_MOST_S = 30.0

_PREFIX = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;")


class RecordReader(Protocol):
    """One record a read, as /dev/kmsg gives them."""

    def read(self) -> bytes:
        """The next record. Raises BlockingIOError (none yet), BrokenPipeError (some were overwritten), OSError."""
        ...

    @property
    def poll_s(self) -> float | None:
        """How often to look although the file says nothing; None: the file tells of every record."""
        ...

    def fileno(self) -> int | None:
        """What the event loop can wait on, or None if it can only look again."""
        ...

    def close(self) -> None:
        """Forget the open file; the next read begins anew."""
        ...


class RealKmsg:
    """``/dev/kmsg`` (or a FIFO in its place), opened at the first read, never blocking."""

    poll_s = None

    def __init__(self, path: Path = Path("/dev/kmsg")) -> None:
        self._path = path
        self._file: int | None = None

    def read(self) -> bytes:
        """The next record; the first read after opening gives the oldest that the kernel still has."""
        if self._file is None:
            self._file = self._open()
        raw = os.read(self._file, MAX_RECORD)
        if not raw:  # a FIFO whose writer has gone; the device never ends
            raise OSError(errno.EIO, "the log has ended", str(self._path))
        return raw

    def _open(self) -> int:
        file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(file).st_mode
        if not stat.S_ISCHR(mode) and not stat.S_ISFIFO(mode):
            os.close(file)
            raise OSError(errno.ENODEV, "not a kernel log device", str(self._path))
        return file

    def fileno(self) -> int | None:
        """The open file."""
        return self._file

    def close(self) -> None:
        """Close it; reading again opens it anew."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class VirtualKmsg:
    """The kernel log of a virtual node. A reboot of the node starts it anew, from record 0."""

    poll_s = POLL_S

    def __init__(self, state: VirtualState) -> None:
        self._state = state
        self._boot: bytes | None = None
        self._next = 0

    def read(self) -> bytes:
        """The next record, oldest first."""
        block = self._state.block
        if block.boot_id != self._boot:
            self._boot, self._next = block.boot_id, 0
        self._state.hush()  # before the look, so that a record written during it rings again
        if self._next >= block.log_next:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        raw = self._state.read_log(self._next)
        if raw is None:
            self._next = max(self._next + 1, int(block.log_next) - layout.LOG_SLOTS)
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        self._next += 1
        return raw

    def fileno(self) -> int | None:
        """The bell that this process's own writers ring."""
        return self._state.bell

    def close(self) -> None:
        """Begin anew with the oldest record."""
        self._boot = None


class KmsgSource:
    """Emits each kernel record once, and SourceState of the source ``kernel``."""

    name = "kmsg"

    def __init__(
        self,
        node: str,
        reader: RecordReader,
        clock: Clock,
        boot_id: str,
        *,
        after_seq: int | None = None,
        retry_s: float = 1.0,
    ) -> None:
        self.boot_id = boot_id  # the boot that ``position`` belongs to
        self._node = node
        self._reader = reader
        self._clock = clock
        self._last = after_seq
        self._skipping = after_seq is not None  # over records that were emitted before
        self._backlog = True
        self._gap_said = False
        self._trouble: OSError | None = None  # met behind records that were read well
        self._up = False
        self._retry_s = retry_s

    @property
    def position(self) -> int | None:
        """The number of the last record emitted."""
        return self._last

    async def run(self, emit: Emit) -> None:
        """Follow the log until cancelled; a log that cannot be read is tried again with back-off."""
        attempt = 0
        try:
            while True:
                try:
                    await self._follow(emit)
                except OSError as error:
                    attempt = 1 if self._up else attempt + 1
                    emit(self._state("down", _explain(error)))
                self._reader.close()
                self._up, self._backlog, self._skipping = False, True, self._last is not None
                await asyncio.sleep(delay_s(attempt, self._node, first_s=self._retry_s, most_s=RETRY_MOST_S))
        finally:
            self._reader.close()

    async def _follow(self, emit: Emit) -> None:
        """Read and wait by turns. Raises OSError."""
        while True:
            records = self.drain()
            if not self._up:
                self._up = True
                emit(self._state("up"))
            for record in records:
                emit(record)
            more = len(records) >= AT_ONCE or self._trouble is not None
            await (asyncio.sleep(0) if more else self._wait())

    def drain(self, most: int = AT_ONCE) -> list[KernelRecord]:
        """What can be read now, about ``most`` records. Raises OSError if the log cannot be read."""
        found: list[KernelRecord] = []
        while len(found) < most and self._trouble is None:
            try:
                raw = self._reader.read()
            except BlockingIOError:
                self._backlog = self._skipping = False
                return found
            except BrokenPipeError:
                found.append(self._gap())
                self._gap_said = True
            except OSError as error:
                self._trouble = error
            else:
                found.extend(self._take(raw))
        if self._trouble is not None and not found:
            trouble, self._trouble = self._trouble, None
            raise trouble
        return found

    def _take(self, raw: bytes) -> Iterator[KernelRecord]:
        """The record in these bytes, behind a gap if its number shows one; nothing if it was emitted before."""
        line = raw.rstrip(b"\n").decode(errors="replace")
        match = _PREFIX.match(raw)
        if match is None:
            yield self._record(line=line)
            return
        priority, sequence, stamp_us = int(match[1]), int(match[2]), int(match[3])
        if self._last is not None and sequence <= self._last:
            if self._skipping:
                return
            self._last = None  # numbering began anew: another boot of a virtual node
        if self._last is not None and sequence > self._last + 1 and not self._gap_said:
            yield self._gap()
        self._gap_said = False
        self._last = sequence
        yield self._record(line=line, seq=sequence, kernel_s=stamp_us / 1e6, facility=priority >> 3)

    def _record(
        self, *, line: str, seq: int | None = None, kernel_s: float | None = None, facility: int | None = None
    ) -> KernelRecord:
        return KernelRecord(
            at=self._clock.now(),
            node=self._node,
            line=line,
            seq=seq,
            kernel_s=kernel_s,
            facility=facility,
            backlog=self._backlog,
        )

    def _gap(self) -> KernelRecord:
        """Records after number ``seq`` were overwritten before they were read."""
        return KernelRecord(at=self._clock.now(), node=self._node, error="EPIPE", seq=self._last, backlog=self._backlog)

    def _state(self, state: str, error: str | None = None) -> SourceState:
        return SourceState(at=self._clock.now(), node=self._node, source="kernel", state=state, error=error)

    async def _wait(self) -> None:
        """Until the log has more, as far as can be told."""
        file, poll_s = self._reader.fileno(), self._reader.poll_s
        if file is None:
            await asyncio.sleep(poll_s or POLL_S)
            return
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(file, readable.set)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(poll_s):
                    await readable.wait()
        finally:
            loop.remove_reader(file)


def _explain(error: OSError) -> str:
    """``NAME: text``, with what to do where we know it."""
    name = errno.errorcode.get(error.errno or 0, "UNKNOWN")
    where = error.filename or "the kernel log"
    if error.errno in {errno.EPERM, errno.EACCES}:
        return (
            f"{name}: {where} may not be read: run the agent as root, give it CAP_SYSLOG"
            " (AmbientCapabilities=CAP_SYSLOG in its unit), or set kernel.dmesg_restrict=0"
        )
    if error.errno == errno.ENOENT:
        return f"{name}: {where} does not exist: containers need the device mounted; set kmsg to its path"
    return f"{name}: {where} cannot be read: {error.strerror}"
