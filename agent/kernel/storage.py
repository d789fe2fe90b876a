"""What the kernel writes of disks and file systems: what keeps weights, spools and logs can fail under a sound GPU.

Texts of Linux: drivers/nvme/host/{core,pci}.c, block/blk-core.c, fs/buffer.c, fs/ext4, fs/xfs, fs/btrfs.
"""

import re
from typing import Any

from agent.kernel.parsed import Kind

Parts = dict[str, Any]

_DISKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("timeout", re.compile(r"nvme (nvme\d{1,4}): I/O .{1,80}timeout, ")),
    ("controller_down", re.compile(r"nvme (nvme\d{1,4}): controller is down; will reset")),
    (
        "controller_lost",
        re.compile(
            r"nvme (nvme\d{1,4}): (?:Device not ready; aborting|Removing after probe failure"
            r"|Disabling device after reset failure)"
        ),
    ),
    (
        "io_error",
        re.compile(
            r"(?:blk_update_request: )?(?:I/O|critical (?:medium|target|nexus)|timeout|recoverable transport"
            r"|protection) error, dev ([\w!-]{1,32}), sector \d"
        ),
    ),
    ("io_error", re.compile(r"(nvme\d{1,4}n\d{1,4}): .{1,60} @ LBA \d{1,20}, \d{1,9} blocks, ")),
    ("io_error", re.compile(r"Buffer I/O error on dev(?:ice)? ([\w!-]{1,32}), logical block ")),
)
_FILESYSTEMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("error", re.compile(r"EXT[2-4]-fs error \(device ([\w!-]{1,32})\): ")),
    ("read_only", re.compile(r"EXT[2-4]-fs \(([\w!-]{1,32})\): Remounting filesystem read-only")),
    (
        "error",
        re.compile(
            r"XFS \(([\w!-]{1,32})\): (?:Corruption of in-memory data|Metadata corruption detected"
            r"|Metadata CRC error detected|[Mm]etadata I/O (?:e|E)rror|log I/O error)"
        ),
    ),
    (
        "shut_down",
        re.compile(r"XFS \(([\w!-]{1,32})\): .{0,80}(?:Filesystem has been shut down|Shutting down filesystem)"),
    ),
    ("error", re.compile(r"BTRFS (?:error|critical) \(device ([\w!-]{1,32})[^)]{0,40}\): ")),
    ("read_only", re.compile(r"BTRFS info \(device ([\w!-]{1,32})[^)]{0,40}\): forced readonly")),
)  # fmt: skip
_STARTS = ("nvme", "blk_update_request", "I/O error", "critical ", "timeout error", "recoverable ", "protection ",
           "Buffer I/O", "EXT", "XFS", "BTRFS")  # fmt: skip


def storage(text: str) -> Parts | None:
    """A disk that fails, or a file system that found an error or gave up writing."""
    if not text.startswith(_STARTS):
        return None
    for kind, table in ((Kind.DISK, _DISKS), (Kind.FILESYSTEM, _FILESYSTEMS)):
        for what, pattern in table:
            if found := pattern.match(text):
                return {"kind": kind, "text": text[:400], "fields": {"disk": found[1], "what": what}}
    return None
