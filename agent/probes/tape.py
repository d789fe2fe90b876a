"""Where the reading of the kernel log stands, so that a record counts once however often it is read.

Within a boot a record of /dev/kmsg is named by its sequence number (Tape). Copies of it that other readers bring
(journal, dmesg, syslog) are known by the kernel's own stamp and the text (Copies).
"""

import msgspec

from vocab.observations import KernelRecord

MOST_SEEN = 4096  # records of interest; a storm of one second is a few thousand


class Gap(msgspec.Struct, frozen=True):
    """Records ``first`` to ``last`` were overwritten before they were read; None where nobody can tell."""

    first: int | None = None
    last: int | None = None


class Tape(msgspec.Struct):
    """The last record read, and the last one that was judged to its end."""

    read: int | None = None
    judged: int | None = None
    broken: bool = False

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

    def rewind(self) -> None:
        """Another boot: sequence numbers begin anew."""
        self.read, self.judged, self.broken = None, None, False


class Copies:
    """Records that several readers of one log tell. Not stored: after a restart each reader knows its place."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, int]] = {}

    def twice(self, source: str, kernel_s: float | None, text: str) -> bool:
        """Whether another source has already told this record: the same stamp (to 1 ms) and text."""
        if kernel_s is None:
            return False
        key = f"{kernel_s:.3f}\x1f{text}"
        counts = self._seen.pop(key, {})
        told = max((count for other, count in counts.items() if other != source), default=0)
        counts[source] = counts.get(source, 0) + 1
        self._seen[key] = counts
        if len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return counts[source] <= told
