"""Where the reading of the kernel log stands, so that a record counts once however often it is read.

Within a boot a record of /dev/kmsg is named by its sequence number (Tape). Copies of it that other readers bring
(journal, dmesg, syslog) are known by the kernel's own stamp and the text (Copies).
"""

import math

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

    def ordinal(self, source: str, stamp_s: float | None, text: str) -> int | None:
        """How many records of this stamp (to 1 ms) and text came before; None if another source told this one."""
        key = self._key(stamp_s, text)
        counts = self._seen.pop(key, {})
        told = max((count for other, count in counts.items() if other != source), default=0)
        before = counts.get(source, 0)
        counts[source] = before + 1
        self._seen[key] = counts
        if len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return None if before < told else before

    def _key(self, stamp_s: float | None, text: str) -> str:
        """Stamps of copies differ by less than 1 ms, which may fall on two sides of a rounding."""
        if stamp_s is None or math.isnan(stamp_s):
            return text
        at_ms = round(stamp_s * 1000)
        near = (f"{at_ms + off}\x1f{text}" for off in (0, -1, 1))
        return next((key for key in near if key in self._seen), f"{at_ms}\x1f{text}")
