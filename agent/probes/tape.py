"""Where the reading of the kernel log stands, so that a record counts once however often it is read.

Within a boot a record of /dev/kmsg is named by its sequence number. Copies of it that other readers bring
(journal, dmesg, syslog) are known by the kernel's own stamp and the text.
"""

import msgspec

from vocab.observations import KernelRecord

MOST_SEEN = 4096  # records of interest; a storm of one second is a few thousand


class Gap(msgspec.Struct, frozen=True):
    """Records ``first`` to ``last`` were overwritten before they were read; None where nobody can tell."""

    first: int | None = None
    last: int | None = None


class Tape(msgspec.Struct):
    """The last record read, the last one that was judged to its end, and what was seen of late."""

    read: int | None = None
    judged: int | None = None
    broken: bool = False
    seen: dict[str, dict[str, int]] = {}

    def take(self, record: KernelRecord) -> tuple[bool, Gap | None]:
        """Whether the record is a new one, and the gap before it, if there is one."""
        gap = Gap() if self.broken else None
        if record.seq is None:
            self.broken = False
            return True, gap
        if self.read is not None and record.seq <= self.read:
            return False, None
        if self.read is not None and record.seq > self.read + 1:
            gap = Gap(self.read + 1, record.seq - 1)
        self.read, self.broken = record.seq, False
        return True, gap

    def settle(self) -> None:
        """All that was read has been judged."""
        self.judged = self.read

    def twice(self, source: str, kernel_s: float | None, text: str) -> bool:
        """Whether another source has already told this record: the same stamp (to 1 ms) and text."""
        if kernel_s is None:
            return False
        key = f"{kernel_s:.3f}\x1f{text}"
        counts = self.seen.pop(key, {})
        told = max((count for other, count in counts.items() if other != source), default=0)
        counts[source] = counts.get(source, 0) + 1
        self.seen[key] = counts
        if len(self.seen) > MOST_SEEN:
            del self.seen[next(iter(self.seen))]
        return counts[source] <= told

    def rewind(self) -> None:
        """Another boot: sequence numbers and stamps begin anew."""
        self.read, self.judged, self.broken, self.seen = None, None, False, {}
