"""What is kept of a fault before a repair wipes it out: the kernel's log, the readings, the vendor's bug report.

It never stops a repair: what cannot be had is left out and named, and a report that does not end is killed.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.roothelper.client import Helper
from agent.roothelper.requests import Collect, Denied, Done, Failed, Piece, ReadReport
from vocab.errors import Unreachable
from vocab.messages import EvidenceFile

log = logging.getLogger(__name__)

KEPT = 20  # folders
MOST_BYTES = 512 * 2**20  # of all of them; the oldest go first
MOST_REPORT = 64 * 2**20  # packed, it has some megabytes
REPORT_S = 120.0  # on an idle node it takes 30 to 60 s
LEAST_REPORT_S = 10.0  # shorter is not worth the beginning
READINGS, KERNEL_LOG, REPORT, NO_REPORT = (
    "readings.json", "kernel.log", "nvidia-bug-report.log.gz", "nvidia-bug-report.missing.txt",
)  # fmt: skip
NAMES = (READINGS, KERNEL_LOG, REPORT, NO_REPORT)


class Evidence:
    """Folders ``root/ORDER``. ``kernel_log`` gives its records, ``readings`` the last of every GPU as JSON."""

    def __init__(
        self,
        root: Path,
        helper: Helper,
        kernel_log: Callable[[], Sequence[bytes]],
        readings: Callable[[], bytes],
        *,
        least_s: float = LEAST_REPORT_S,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._root = root
        self._helper = helper
        self._kernel_log = kernel_log
        self._readings = readings
        self._least_s = least_s
        self._most_bytes = most_bytes
        self._turn = asyncio.Lock()  # two reports at a time take longer than one after the other

    async def gather(self, order: str, limit_s: float) -> None:
        """Take it, the slow part for at most ``limit_s``."""
        readings = self._readings()
        try:
            await asyncio.to_thread(self._write, order, readings)
        except OSError as error:
            log.error("evidence could not be kept", extra={"action_id": order, "error": str(error)})
        if limit_s >= self._least_s:
            why = await self._report(order, min(limit_s, REPORT_S))
            log.info("bug report", extra={"action_id": order, "error": why})
            await asyncio.to_thread(self._settle, order, why)

    async def gather_once(self, order: str) -> None:
        """The same, unless it was taken for this order before."""
        async with self._turn:
            if not any(file.name in {REPORT, NO_REPORT} for file in self.files(order)):  # the last that is written
                await self.gather(order, REPORT_S)

    def files(self, order: str) -> tuple[EvidenceFile, ...]:
        """What there is for an order."""
        found = (self._root / order / name for name in NAMES)
        return tuple(EvidenceFile(path.name, path.stat().st_size) for path in found if path.is_file())

    def place(self, order: str, name: str) -> Path | None:
        """Where a piece of evidence lies; None if there is none of that name."""
        path = self._root / order / name
        return path if name in NAMES and path.is_file() else None

    def _write(self, order: str, readings: bytes) -> None:
        folder = self._root / order
        folder.mkdir(parents=True, exist_ok=True)
        (folder / READINGS).write_bytes(readings)
        (folder / KERNEL_LOG).write_bytes(b"".join(self._kernel_log()))
        self._forget(order)

    def _settle(self, order: str, why: str | None) -> None:
        try:
            if why is not None and (self._root / order).is_dir():
                (self._root / order / NO_REPORT).write_text(why + "\n")
            self._forget(order)
        except OSError as error:
            log.error("evidence could not be kept", extra={"action_id": order, "error": str(error)})

    def _forget(self, order: str) -> None:
        """The oldest folders, where they are too many or too large; the one that is being filled stays."""
        folders = sorted(self._root.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        total = 0
        for nth, folder in enumerate(sorted(folders, key=lambda path: path.name != order)):
            total += sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0
            if folder.name != order and (nth >= KEPT or total > self._most_bytes):
                shutil.rmtree(folder, ignore_errors=True)

    async def _report(self, order: str, limit_s: float) -> str | None:
        """Have it made and take it over; why there is none, if so."""
        try:
            async with asyncio.timeout(limit_s + self._least_s):
                reply = await self._helper.ask(Collect(order=order, limit_s=limit_s))
                if isinstance(reply, Done):
                    return await self._take_over(order)
        except (Unreachable, TimeoutError) as error:
            return str(error) or "it did not come in time"
        except OSError as error:
            return f"it could not be kept: {error}"
        return reply.why if isinstance(reply, Denied | Failed) else "an odd answer"

    async def _take_over(self, order: str) -> str | None:
        """The helper's folder is root's alone: piece by piece into ours. Raises OSError or Unreachable."""
        folder = self._root / order
        part, size = folder / f".{REPORT}", 0
        try:
            with part.open("wb") as file:
                while True:
                    reply = await self._helper.ask(ReadReport(order=order, offset=size))
                    if not isinstance(reply, Piece):
                        return getattr(reply, "why", "an odd answer")
                    if reply.total > MOST_REPORT:
                        return f"it has {reply.total} bytes, more than {MOST_REPORT}"
                    await asyncio.to_thread(file.write, reply.piece)
                    size += len(reply.piece)
                    if size >= reply.total or not reply.piece:
                        break
            part.replace(folder / REPORT)
        finally:
            part.unlink(missing_ok=True)
        return None
