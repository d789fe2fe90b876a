"""The kernel log by way of a real journald and the real journalctl, in a mount namespace of their own.

Their /dev/kmsg is a FIFO of the test's, so nothing touches the machine's own log; their /run and machine id are others.
"""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent.judge import Judge
from agent.sources.boot import boot_id
from agent.sources.journal import JournalSource
from tests.agent.sources.collector import running
from tests.programs import lacking, need
from vocab.clock import SystemClock
from vocab.messages import EventItem
from vocab.observations import KernelRecord, SourceState

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount"),
]

JOURNALD = Path("/lib/systemd/systemd-journald")
SYSTEMD = "apt-get install systemd"
XID = "NVRM: Xid (PCI:0000:5d:00): 79, pid=1234, name=python3, GPU has fallen off the bus."
MACHINE = "0123456789abcdef0123456789abcdef"
LIMIT_S = 30.0
SET_UP = """
set -e
mount -t tmpfs run /run
mkdir -p /run/systemd/journal /run/log/journal
if [ -d /var/log/journal ]; then mount -t tmpfs log /var/log/journal; fi
mount --bind "$1/machine-id" /etc/machine-id
mount --bind "$1/kmsg" /dev/kmsg
exec "$2"
"""


class Journal:
    """A running journald: what is written is a record of its kernel's log."""

    def __init__(self, folder: Path, pid: int, file: int) -> None:
        self._folder = folder
        self._pid = pid
        self._file = file

    def log(self, number: int, text: str = XID, *, facility: int = 0) -> None:
        """One record, as the kernel gives it: a read each."""
        os.write(self._file, f"{facility * 8 + 3},{number},{number * 1_500_000},-;{text}\n".encode())

    def source(self) -> JournalSource:
        """A source that asks the journalctl of that namespace."""
        inside = (need("nsenter", "apt-get install util-linux"), "--mount", f"--target={self._pid}")
        command = (*inside, need("journalctl", SYSTEMD))
        return JournalSource(
            "n1", self._folder / "place", SystemClock(), boot_id(), command=command, retry_s=0.1, save_s=0.0
        )


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    if not JOURNALD.exists():
        lacking(f"{JOURNALD} is not installed; run: {SYSTEMD}")
    if not Path("/etc/machine-id").exists():
        lacking("there is no /etc/machine-id to mount another over; run: systemd-machine-id-setup")
    unshare = [need("unshare", "apt-get install util-linux"), "--mount", "--propagation", "private"]
    if subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/run"], capture_output=True).returncode:
        pytest.skip("root may not mount here")
    (tmp_path / "machine-id").write_text(f"{MACHINE}\n")
    os.mkfifo(tmp_path / "kmsg")
    file = os.open(tmp_path / "kmsg", os.O_RDWR)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_DIRECT)  # packet mode: one write is one read
    daemon = subprocess.Popen(
        [*unshare, "sh", "-c", SET_UP, "sh", str(tmp_path), str(JOURNALD)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_files(daemon)
        yield Journal(tmp_path, daemon.pid, file)
    finally:
        with suppress(ProcessLookupError):
            daemon.kill()
        daemon.wait()
        os.close(file)


def _await_files(daemon: subprocess.Popen[bytes]) -> None:
    """Until its journal is there: before that the namespace is not whole."""
    folder, until = Path(f"/proc/{daemon.pid}/root/run/log/journal/{MACHINE}"), time.monotonic() + LIMIT_S
    while not list(folder.glob("*.journal")):
        assert daemon.poll() is None, "journald has ended"
        assert time.monotonic() < until, "journald has made no journal"
        time.sleep(0.02)


async def test_records_come_from_a_real_journal_with_the_kernels_stamps(journal: Journal) -> None:
    journal.log(7)
    journal.log(8, "forged", facility=1)
    async with running(journal.source()) as found:
        last = await found.find(KernelRecord, lambda one: one.kernel_s == 12.0)
        (first,) = [one for one in found.all(KernelRecord) if one.kernel_s == 10.5]
        assert (first.line or "").endswith(f"kernel: {XID}")
        assert (first.facility, last.facility) == (0, 1)
        journal.log(9, "live")
        live = await found.find(KernelRecord, lambda one: one.kernel_s == 13.5)
        assert not live.backlog
        assert found.all(SourceState)[-1].state == "up"


async def test_reading_goes_on_in_a_real_journal_where_it_was(journal: Journal) -> None:
    for number in range(5):
        journal.log(number, f"NVRM: line {number}")
    async with running(journal.source()) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 6.0)
    journal.log(5, "NVRM: line 5")
    async with running(journal.source()) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 7.5)
        assert [one.kernel_s for one in found.all(KernelRecord)] == [6.0, 7.5], (
            "one step behind, and nothing is left out"
        )


async def test_what_a_real_journald_missed_is_a_gap(journal: Journal) -> None:
    journal.log(0)
    journal.log(40)
    async with running(journal.source()) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 60.0)
        assert [one.error for one in found.all(KernelRecord)] == [None, "EPIPE", None]


async def test_a_record_of_a_real_journal_is_judged_as_the_same_of_kmsg(journal: Journal) -> None:
    journal.log(7)
    async with running(journal.source()) as found:
        record = await found.find(KernelRecord, lambda one: one.line is not None)
    raw = KernelRecord(at=record.at, node="n1", line=f"3,7,10500000,-;{XID}", seq=7, kernel_s=10.5, facility=0)
    assert judged(record) == judged(raw) == [("xid:79", "0000:5d:00", 1234, "critical", 10.5, False)]


def judged(record: KernelRecord) -> list[tuple[object, ...]]:
    """What a judge of its own makes of it."""
    judge = Judge("n1", boot_id())
    items = [*judge.observe(record, record.at), *judge.close(record.at + 1.0)]
    events = [item.event for item in items if isinstance(item, EventItem)]
    return [(one.code, one.pci, one.pid, one.severity.value, one.kernel_s, one.injected) for one in events]
