"""Where the reading of the kernel log stands, so that a record counts once however often it is read.

Within a boot a record is named by its sequence number. Records without one: see copies.
"""

import msgspec


class Gap(msgspec.Struct, frozen=True):
    """Records ``first`` to ``last`` were overwritten before they were read; None where nobody can tell."""

    first: int | None = None
    last: int | None = None


class Tape(msgspec.Struct):
    """The last record read, and the last one that was judged to its end."""

    read: int | None = None
    judged: int | None = None
    broken: bool = False

    def take(self, seq: int | None) -> tuple[bool, Gap | None]:
        """Whether the record of this number is a new one, and the gap before it, if there is one."""
        gap = Gap() if self.broken else None
        if seq is None:
            self.broken = False
            return True, gap
        if self.read is not None and seq <= self.read:
            return False, None
        if self.read is not None:
            gap = Gap(self.read + 1, seq - 1) if seq > self.read + 1 else None
        self.read, self.broken = seq, False
        return True, gap

    def go_on(self, seq: int | None) -> bool:
        """Take the record that follows the last one at once; False, and nothing is taken, if it is any other."""
        if self.broken or (seq is not None and self.read is not None and seq != self.read + 1):
            return False
        if seq is not None:
            self.read = self.judged = seq
        return True

    def settle(self) -> None:
        """All that was read has been judged."""
        self.judged = self.read

    def rewind(self) -> None:
        """Another boot: sequence numbers begin anew."""
        self.read, self.judged, self.broken = None, None, False
