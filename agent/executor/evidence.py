"""What is kept of a fault before a repair wipes it out: the kernel's log, the readings, the vendor's bug report.

It never stops a repair: what cannot be had is left out, and a report that does not end is killed.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.roothelper.client import Helper
from agent.roothelper.requests import Collect, Done
from vocab.errors import Unreachable

log = logging.getLogger(__name__)

KEPT = 20  # folders; a bug report has some megabytes
REPORT_S = 120.0  # on an idle node it takes 30 to 60 s
LEAST_REPORT_S = 10.0  # shorter is not worth the beginning


class Evidence:
    """Folders ``root/ORDER``. ``kernel_log`` gives its records, ``readings`` the last of every GPU as JSON."""

    def __init__(
        self, root: Path, helper: Helper, kernel_log: Callable[[], Sequence[bytes]], readings: Callable[[], bytes]
    ) -> None:
        self._root = root
        self._helper = helper
        self._kernel_log = kernel_log
        self._readings = readings

    async def gather(self, order: str, limit_s: float) -> None:
        """Take it, the slow part for at most ``limit_s``."""
        readings = self._readings()
        try:
            await asyncio.to_thread(self._write, order, readings)
        except OSError as error:
            log.error("evidence could not be kept", extra={"action_id": order, "error": str(error)})
        if limit_s >= LEAST_REPORT_S:
            await self._report(order, min(limit_s, REPORT_S))

    def _write(self, order: str, readings: bytes) -> None:
        folder = self._root / order
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "readings.json").write_bytes(readings)
        (folder / "kernel.log").write_bytes(b"".join(self._kernel_log()))
        folders = sorted(self._root.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in folders[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)

    async def _report(self, order: str, limit_s: float) -> None:
        try:
            reply = await self._helper.ask(Collect(order=order, limit_s=limit_s))
        except Unreachable as error:
            log.warning("no bug report", extra={"action_id": order, "error": str(error)})
            return
        told = {"path": reply.path} if isinstance(reply, Done) else {"error": getattr(reply, "why", "")}
        log.info("bug report", extra={"action_id": order, **told})
