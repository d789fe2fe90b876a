"""Lines of disks and file systems."""

import pytest

from agent.judge import Judge
from agent.kernel.parsed import Kind
from agent.kernel.parser import parse
from vocab.events import Severity
from vocab.messages import EventItem
from vocab.observations import KernelRecord

PREFIXES = ["", "[  812.000001] ", "Oct 12 10:00:01 n1 kernel: ", "4,77,812000001,-;"]
DISK, FILESYSTEM = Kind.DISK, Kind.FILESYSTEM


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("text", "kind", "disk", "what"),
    [
        ("nvme nvme2: I/O 417 QID 9 timeout, aborting", DISK, "nvme2", "timeout"),
        ("nvme nvme0: I/O tag 12 (000c) opcode 0x1 (I/O Cmd) QID 3 timeout, reset", DISK, "nvme0", "timeout"),
        ("nvme nvme1: controller is down; will reset: CSTS=0xffffffff", DISK, "nvme1", "controller_down"),
        ("nvme nvme1: Device not ready; aborting reset, CSTS=0x1", DISK, "nvme1", "controller_lost"),
        ("nvme nvme1: Removing after probe failure status: -19", DISK, "nvme1", "controller_lost"),
        ("blk_update_request: I/O error, dev nvme1n1, sector 8192 op 0x1:(WRITE)", DISK, "nvme1n1", "io_error"),
        ("critical medium error, dev nvme0n1, sector 77 op 0x0:(READ) flags 0x0", DISK, "nvme0n1", "io_error"),
        ("nvme0n1: I/O Cmd(0x2) @ LBA 1234, 8 blocks, I/O Error (sct 0x3 / sc 0x71)", DISK, "nvme0n1", "io_error"),
        ("I/O error, dev sda, sector 2048 op 0x0:(READ)", DISK, "sda", "io_error"),
        ("Buffer I/O error on dev dm-3, logical block 12, lost async page write", DISK, "dm-3", "io_error"),
        ("EXT4-fs error (device nvme1n1p2): ext4_find_entry:1463: inode #2", FILESYSTEM, "nvme1n1p2", "error"),
        ("EXT4-fs (nvme1n1p2): Remounting filesystem read-only", FILESYSTEM, "nvme1n1p2", "read_only"),
        ("XFS (md0): log I/O error -5", FILESYSTEM, "md0", "error"),
        ("XFS (md0): Filesystem has been shut down due to log error (0x2).", FILESYSTEM, "md0", "shut_down"),
        ("XFS (md0): Metadata corruption detected at xfs_agf_read_verify", FILESYSTEM, "md0", "error"),
        ("BTRFS error (device sdb1): bdev /dev/sdb1 errs: wr 1, rd 0", FILESYSTEM, "sdb1", "error"),
        ("BTRFS info (device sdb1: state E): forced readonly", FILESYSTEM, "sdb1", "read_only"),
    ],
)  # fmt: skip
def test_what_fails_is_named_with_its_disk(prefix, text, kind, disk, what):
    (record,) = parse([prefix + text])
    assert (record.kind, record.fields) == (kind, {"disk": disk, "what": what})


@pytest.mark.parametrize(
    "text",
    [
        "nvme nvme0: 32/0/0 default/read/poll queues",
        "nvme nvme0: missing or invalid SUBNQN field.",
        "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
        "XFS (md0): Ending clean mount",
        "BTRFS info (device sdb1): disk space caching is enabled",
    ],
)
def test_ordinary_words_of_disks_are_none_of_ours(text):
    assert not list(parse([f"[  8.1] {text}"]))


def test_errors_of_one_disk_are_one_event_and_hold_no_gpu():
    judge = Judge("n1")
    items = []
    for number in range(3):
        line = f"3,{number},{number}000000,-;I/O error, dev nvme1n1, sector {number} op 0x0:(READ)"
        record = KernelRecord(
            at=100.0 + number, node="n1", source="kmsg", line=line, seq=number, kernel_s=float(number)
        )
        items += judge.observe(record, record.at)
    events = {item.event.id: item.event for item in [*items, *judge.tick(200.0)] if isinstance(item, EventItem)}
    (event,) = events.values()
    assert (event.code, event.severity, event.gpu, event.count) == ("disk_error", Severity.ERROR, None, 3)
