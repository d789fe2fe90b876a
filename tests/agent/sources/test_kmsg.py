"""The kernel log, real and virtual. Nothing here touches the machine's own log."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sources.kmsg import AT_ONCE, KmsgSource, RealKmsg, VirtualKmsg
from agent.virtual import layout
from agent.virtual.faults import Fault, apply
from agent.virtual.lifecycle import reboot
from agent.virtual.state import VirtualState
from tests.agent.sources.collector import running
from vocab.clock import SystemClock, VirtualClock
from vocab.observations import KernelRecord, SourceState


class Script:
    """A reader that plays what it is given: bytes, or errors to raise."""

    poll_s = 0.01

    def __init__(self, *steps: bytes | OSError) -> None:
        self.steps = list(steps)

    def read(self) -> bytes:
        step = self.steps.pop(0) if self.steps else BlockingIOError()
        if isinstance(step, OSError):
            raise step
        return step

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        pass


def source(reader: Script | VirtualKmsg, *, after_seq: int | None = None) -> KmsgSource:
    return KmsgSource("node-a", reader, VirtualClock(500.0), "boot-1", after_seq=after_seq, retry_s=0.01)


def record(number: int, text: str = "text") -> bytes:
    return f"3,{number},{number}500000,-;{text}\n".encode()


@pytest.fixture
def state(tmp_path: Path) -> VirtualState:
    return VirtualState.create(tmp_path / "virtual.state", "node-a", clock=VirtualClock(500.0))


def test_a_record_keeps_its_raw_line_and_its_own_stamp() -> None:
    (found,) = source(Script(b"30,7,1234567,-;usb 1-1: hello\n SUBSYSTEM=usb\n DEVICE=+usb:1-1\n")).drain()
    assert found == KernelRecord(
        at=500.0,
        node="node-a",
        line="30,7,1234567,-;usb 1-1: hello\n SUBSYSTEM=usb\n DEVICE=+usb:1-1",
        seq=7,
        kernel_s=1.234567,
        facility=3,
        backlog=True,
    )


def test_what_was_there_at_the_start_is_backlog_and_the_rest_is_live(state: VirtualState) -> None:
    kernel = source(VirtualKmsg(state))
    assert [one.backlog for one in kernel.drain()] == [True]
    numbers = apply(state, Fault(kind="xid", code=79))
    found = kernel.drain()
    assert [one.seq for one in found] == list(numbers)
    assert {one.backlog for one in found} == {False}
    assert kernel.position == numbers[-1]


def test_reading_goes_on_after_the_saved_position() -> None:
    kernel = source(Script(*(record(number) for number in range(5))), after_seq=2)
    assert [one.seq for one in kernel.drain()] == [3, 4]


def test_records_lost_while_the_agent_was_away_are_a_gap() -> None:
    found = source(Script(record(7), record(8)), after_seq=2).drain()
    assert [(one.error, one.seq) for one in found] == [("EPIPE", 2), (None, 7), (None, 8)]


def test_a_jump_in_the_numbers_is_one_gap() -> None:
    found = source(Script(record(1), record(5), record(6))).drain()
    assert [(one.error, one.seq) for one in found] == [(None, 1), ("EPIPE", 1), (None, 5), (None, 6)]


def test_an_overrun_that_the_kernel_reports_is_told_once() -> None:
    found = source(Script(record(1), BrokenPipeError(), record(5), record(6))).drain()
    assert [(one.error, one.seq) for one in found] == [(None, 1), ("EPIPE", 1), (None, 5), (None, 6)]


def test_a_first_record_with_a_high_number_is_no_gap() -> None:
    assert [one.error for one in source(Script(record(900))).drain()] == [None]


@pytest.mark.parametrize("raw", [b"\n", b"garbage\n", b"3,x,1,-;text\n", b"\xff\xfe;\n"])
def test_a_record_that_is_not_of_the_form_is_handed_on_as_it_is(raw: bytes) -> None:
    (found,) = source(Script(raw)).drain()
    assert found.line == raw.rstrip(b"\n").decode(errors="replace")
    assert (found.seq, found.kernel_s, found.facility) == (None, None, None)


def test_a_storm_is_read_in_portions(state: VirtualState) -> None:
    for _ in range(300):
        state.log("storm")
    kernel = source(VirtualKmsg(state))
    assert len(kernel.drain()) == AT_ONCE
    assert len(kernel.drain()) == 301 - AT_ONCE


def test_an_overrun_of_the_virtual_log_raises_epipe_and_goes_on_with_the_oldest(state: VirtualState) -> None:
    kernel = source(VirtualKmsg(state))
    kernel.drain()
    for _ in range(layout.LOG_SLOTS + 10):
        state.log("flood")
    found = kernel.drain(2)
    assert [(one.error, one.seq) for one in found] == [("EPIPE", 0), (None, 11)]


def test_an_empty_virtual_log_gives_eagain(state: VirtualState) -> None:
    reader = VirtualKmsg(state)
    reader.read()
    with pytest.raises(BlockingIOError):
        reader.read()


def test_a_reboot_of_the_virtual_node_starts_the_log_anew_without_a_gap(state: VirtualState) -> None:
    kernel = source(VirtualKmsg(state))
    apply(state, Fault(kind="xid", code=79))
    kernel.drain()
    reboot(state)
    found = kernel.drain()
    assert [(one.error, one.seq) for one in found] == [(None, 0)]


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A FIFO in place of the device, in packet mode: one write is one read, as one record is."""
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY)
    fcntl.fcntl(writing, fcntl.F_SETFL, os.O_DIRECT)
    os.close(reading)
    yield path, writing
    os.close(writing)


async def test_the_device_is_followed_without_polling(fifo: tuple[Path, int]) -> None:
    path, writing = fifo
    kernel = KmsgSource("node-a", RealKmsg(path), SystemClock(), "boot-1")
    async with running(kernel) as found:
        up = await found.find(SourceState)
        assert (up.source, up.state) == ("kernel", "up")
        os.write(writing, record(1))
        os.write(writing, record(2))
        last = await found.find(KernelRecord, lambda one: one.seq == 2)
        assert [one.seq for one in found.all(KernelRecord)] == [1, 2]
        assert last.backlog is False


async def test_a_log_that_may_not_be_read_names_the_capability_and_the_next_step() -> None:
    denied = PermissionError(1, "Operation not permitted", "/dev/kmsg")
    async with running(source(Script(denied))) as found:
        down = await found.find(SourceState)
        assert (down.source, down.state) == ("kernel", "down")
        assert (down.error or "").startswith("EPERM: /dev/kmsg may not be read: ")
        assert "CAP_SYSLOG" in (down.error or "")


async def test_a_log_that_comes_back_is_read_on_and_reported_up() -> None:
    gone = OSError(5, "Input/output error", "/dev/kmsg")
    reader = Script(record(1), record(2), gone, record(1), record(2), record(3))
    async with running(source(reader)) as found:
        await found.find(KernelRecord, lambda one: one.seq == 3)
        assert [one.state for one in found.all(SourceState)] == ["up", "down", "up"]
        assert [one.seq for one in found.all(KernelRecord)] == [1, 2, 3]


@pytest.mark.parametrize(("name", "error"), [("absent", "ENOENT"), ("file", "ENODEV")])
async def test_a_path_that_is_no_log_is_named(tmp_path: Path, name: str, error: str) -> None:
    (tmp_path / "file").write_text("3,1,1,-;text\n")
    path = tmp_path / name
    async with running(KmsgSource("node-a", RealKmsg(path), SystemClock(), "boot-1")) as found:
        down = await found.find(SourceState)
        assert (down.error or "").startswith(f"{error}: {path} ")
