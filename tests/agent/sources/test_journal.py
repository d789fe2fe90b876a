"""The kernel log by way of the journal: a stand-in for journalctl speaks its JSON; the real one where there is one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.judge import Judge
from agent.sources.journal import MISSED, JournalSource
from tests.agent.sources.collector import running
from tests.programs import need
from vocab.clock import SystemClock
from vocab.messages import EventItem
from vocab.observations import KernelRecord, NodeSeen, SourceState

BOOT = "0f3ab7c2-9e21-4c55-8a3b-1d2e3f405162"
XID = "NVRM: Xid (PCI:0000:5d:00): 79, pid=1234, name=python3, GPU has fallen off the bus."
ROOT = Path(__file__).resolve().parents[3]


def entry(number: int, text: Any = XID, **more: Any) -> str:
    return json.dumps(
        {
            "__CURSOR": f"s=1;i={number}",
            "__REALTIME_TIMESTAMP": str((1_700_000_000 + number) * 1_000_000),
            "_SOURCE_MONOTONIC_TIMESTAMP": str(number * 1_500_000),
            "_BOOT_ID": BOOT.replace("-", ""),
            "_HOSTNAME": "n1",
            "_TRANSPORT": "kernel",
            "SYSLOG_FACILITY": "0",
            "PRIORITY": "3",
            "MESSAGE": text,
            **more,
        }
    )


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal"
    path.write_text("")
    return path


@pytest.fixture
def add(journal: Path) -> Callable[..., None]:
    def write(*lines: str) -> None:
        with journal.open("a") as file:
            file.write("".join(line + "\n" for line in lines))

    return write


def source(journal: Path, *, save_s: float = 3_600.0, first_s: float = 15.0) -> JournalSource:
    command = (sys.executable, str(ROOT / "tests" / "fakes" / "journalctl.py"), str(journal))
    return JournalSource(
        "n1",
        journal.parent / "place",
        SystemClock(),
        BOOT,
        command=command,
        retry_s=0.01,
        save_s=save_s,
        first_s=first_s,
    )


async def test_a_record_comes_with_the_kernels_own_stamp_and_facility(journal, add):
    add(entry(7))
    async with running(source(journal)) as found:
        assert (await found.find(SourceState)).state == "up"
        record = await found.find(KernelRecord)
        assert (record.source, record.seq, record.kernel_s, record.facility) == ("journal", None, 10.5, 0)
        assert record.line == f"2023-11-14T22:13:27.000000Z n1 kernel: {XID}"
        assert record.backlog


async def test_records_that_come_later_are_followed_and_live(journal, add):
    add(entry(1))
    async with running(source(journal)) as found:
        await found.find(KernelRecord)
        add(entry(2, __REALTIME_TIMESTAMP="4000000000000000"))
        live = await found.find(KernelRecord, lambda one: not one.backlog)
        assert live.kernel_s == 3.0


async def test_a_message_that_is_no_text_is_a_list_of_bytes(journal, add):
    add(entry(1, list(b"NVRM: \xff text")))
    async with running(source(journal)) as found:
        assert (await found.find(KernelRecord)).line.endswith("kernel: NVRM: \ufffd text")


async def test_what_is_no_entry_or_of_another_boot_or_program_is_left_out(journal, add):
    add("{torn", "[]", "", entry(1, None), entry(2, _TRANSPORT="syslog"), entry(3, _BOOT_ID="0" * 32), entry(4, "last"))
    async with running(source(journal)) as found:
        assert (await found.find(KernelRecord)).line.endswith("kernel: last")


async def test_records_that_journald_missed_are_a_gap(journal, add):
    add(entry(1), entry(2, "Missed 17 kernel messages", MESSAGE_ID=MISSED, _TRANSPORT="driver"), entry(3))
    async with running(source(journal)) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 4.5)
        assert [one.error for one in found.all(KernelRecord)] == [None, "EPIPE", None]


async def test_reading_goes_on_where_it_was(journal, add):
    add(entry(1), entry(2), entry(3))
    async with running(source(journal, save_s=0.0)) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 4.5)
    add(entry(4))
    async with running(source(journal)) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 6.0)
        assert [one.kernel_s for one in found.all(KernelRecord)] == [4.5, 6.0], (
            "the place is one step behind, never ahead"
        )


async def test_the_place_of_another_boot_is_none(journal, add):
    add(entry(1), entry(2))
    journal.with_name("place").write_text(json.dumps({"boot_id": "other", "cursor": "s=1;i=2"}))
    async with running(source(journal)) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 3.0)
        assert len(found.all(KernelRecord)) == 2


async def test_a_cursor_that_has_gone_is_told_and_the_boot_is_read_anew(journal, add):
    add(entry(1), entry(2))
    journal.with_name("place").write_text(json.dumps({"boot_id": BOOT, "cursor": "s=9;i=9"}))
    async with running(source(journal)) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 3.0)
        assert [one.error for one in found.all(KernelRecord)] == ["CURSOR_GONE", None, None]
        assert [one.state for one in found.all(SourceState)] == ["down", "up"]


async def test_a_place_that_is_damaged_is_none(journal, add):
    add(entry(1))
    journal.with_name("place").write_text("{")
    async with running(source(journal)) as found:
        assert (await found.find(KernelRecord)).kernel_s == 1.5


async def test_a_journal_that_may_not_be_read_is_down_with_what_to_do(journal, add):
    add(entry(1))
    journal.with_suffix(".denied").touch()
    async with running(source(journal, first_s=0.3)) as found:
        down = await found.find(SourceState)
        assert (down.source, down.state) == ("kernel", "down")
        assert (down.error or "").startswith("EACCES: ")
        assert "systemd-journal" in (down.error or "")


async def test_a_journalctl_that_ends_is_started_again_after_what_was_read(journal, add):
    add(entry(1), entry(2))
    journal.with_suffix(".ended").touch()
    async with running(source(journal)) as found:
        down = await found.find(SourceState, lambda one: one.state == "down")
        assert (down.error or "").startswith("ENDED: ")
        journal.with_suffix(".ended").unlink()
        add(entry(3))
        await found.find(KernelRecord, lambda one: one.kernel_s == 4.5)
        assert [one.kernel_s for one in found.all(KernelRecord)] == [1.5, 3.0, 4.5]


async def test_a_machine_without_journalctl_is_down(journal):
    absent = JournalSource("n1", journal, SystemClock(), BOOT, command=(str(journal.parent / "absent"),))
    async with running(absent) as found:
        assert ((await found.find(SourceState)).error or "").startswith("NOT_FOUND: ")


async def test_a_flood_is_handed_on_whole(journal, add):
    add(*(entry(number, f"NVRM: line {number}") for number in range(5_000)))
    async with running(source(journal)) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 4_999 * 1.5)
        assert len(found.all(KernelRecord)) == 5_000


async def test_the_same_record_by_kmsg_and_by_the_journal_is_one_event(journal, add):
    add(entry(7))
    async with running(source(journal)) as found:
        record = await found.find(KernelRecord)
    judge = Judge("n1", BOOT)
    judge.observe(NodeSeen(at=record.at, node="n1", boot_id=BOOT, boot_at=1_700_000_000.0 - 3.5), record.at)
    kmsg = KernelRecord(
        at=record.at, node="n1", line=f"3,41,10500321,-;{XID}", seq=41, kernel_s=10.500321, facility=0, backlog=True
    )
    items = [*judge.observe(kmsg, record.at), *judge.observe(record, record.at), *judge.close(record.at + 1)]
    events = [item.event for item in items if isinstance(item, EventItem) and item.event.code == "xid:79"]
    assert {(event.id, event.count) for event in events} == {(events[0].id, 1)}


async def test_what_kmsg_has_told_before_a_restart_the_journal_does_not_tell_again(journal, add):
    add(entry(7), entry(8))
    async with running(source(journal)) as found:
        await found.find(KernelRecord, lambda one: one.kernel_s == 12.0)
    first, second = found.all(KernelRecord)
    judge = Judge("n1", BOOT)
    judge.observe(NodeSeen(at=first.at, node="n1", boot_id=BOOT, boot_at=1_700_000_000.0 - 3.5), first.at)
    kmsg = KernelRecord(
        at=first.at, node="n1", line=f"3,41,10500000,-;{XID}", seq=41, kernel_s=10.5, facility=0, backlog=True
    )
    told = [item.event for item in judge.observe(kmsg, first.at) if isinstance(item, EventItem)]
    again = Judge.restore(judge.snapshot())
    assert not again.observe(first, first.at)
    items = [*again.observe(second, second.at), *again.close(second.at + 1)]
    counts = {item.event.id: item.event.count for item in items if isinstance(item, EventItem)}
    assert counts == {told[0].id: 2}, "the second record is news, and folds into the event of the first"


async def test_the_real_journalctl_takes_our_arguments(tmp_path):
    journalctl = need("journalctl", "apt-get install systemd")
    real = JournalSource(
        "n1", tmp_path / "place", SystemClock(), BOOT, command=(journalctl, f"--directory={tmp_path}"), first_s=0.5
    )
    async with running(real) as found:
        error = (await found.find(SourceState)).error or ""
        assert error.startswith(("EACCES: ", "ENDED: ")), error
        assert "unrecognized" not in error
