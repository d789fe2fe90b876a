"""What ``corral up`` must end: its own children and the replicas that its agent started."""

import signal
import time
from collections.abc import Sequence
from pathlib import Path

from agent.replicas.identity import Identity, alive, boot_id, find, send
from agent.replicas.record import Folder, known, marks

POLL_S = 0.05


def _wait(processes: Sequence[Identity], seconds: float, boot: str) -> list[Identity]:
    deadline = time.monotonic() + seconds
    left = [process for process in processes if alive(process, boot)]
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = [process for process in left if alive(process, boot)]
    return left


def stop(processes: Sequence[Identity], grace_s: float) -> None:
    """End these processes: SIGTERM, after ``grace_s`` a second one (cut off now), then SIGKILL."""
    boot = boot_id()
    left = [process for process in processes if alive(process, boot)]
    for number, seconds in ((signal.SIGTERM, grace_s), (signal.SIGTERM, grace_s / 2), (signal.SIGKILL, 5.0)):
        for process in left:
            send(process, number, boot)
        left = _wait(left, seconds, boot)
        if not left:
            return


def replicas(run: Path) -> list[Identity]:
    """The replicas under this run folder that still run, also one whose start was only intended."""
    boot = boot_id()
    found = []
    for name in known(run):
        folder = Folder(run, name)
        record = folder.recorded()
        process = record.identity if record and record.pid else find(marks(name, folder.beat), boot)
        if process and alive(process, boot):
            found.append(process)
    return found
