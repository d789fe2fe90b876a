"""The call table: in shared memory, which driver call each thread of a child is in, and since when.

The child writes a slot before and after every call; the agent reads the slots and so sees a call that does
not come back without ever waiting for it. One writer a slot; ``began_ns`` is written last and read twice,
so a reader never joins the name of one call with the time of another.
"""

import mmap
import struct
import time
from pathlib import Path

import msgspec

from vocab.errors import SourceDown

MAGIC = b"CCT1"
_HEAD = struct.Struct("<4sIII")  # magic, slots, pid of the child, spare
_SLOT = struct.Struct("<QdQ48s56s")  # began (CLOCK_MONOTONIC, 0: in no call), allowed seconds, calls so far, GPU, call
_BEGAN = struct.Struct("<Q")
_NAME_AT = 72
_SLOT_BYTES = _SLOT.size
assert _SLOT_BYTES == 128, _SLOT_BYTES  # two cache lines, so that two threads never share one


class Call(msgspec.Struct, frozen=True):
    """A call that is under way. ``gpu`` None is node-wide; ``allowed_s`` is how long it waits by intent."""

    gpu: str | None
    call: str
    began_ns: int
    allowed_s: float

    def overdue_s(self, now_ns: int) -> float:
        """Seconds that it has taken beyond what it waits by intent."""
        return (now_ns - self.began_ns) / 1e9 - self.allowed_s


class CallTable:
    """The mapped table. The parent makes it, the child opens it."""

    def __init__(self, mapped: mmap.mmap, slots: int) -> None:
        self._map = mapped
        self.slots = slots

    @classmethod
    def create(cls, path: Path, slots: int) -> "CallTable":
        """A new table of empty slots; replaces an old file, whose readers and writers keep the old one."""
        beside = path.with_name(f".{path.name}.new")
        beside.write_bytes(_HEAD.pack(MAGIC, slots, 0, 0).ljust(_SLOT_BYTES, b"\0") + bytes(slots * _SLOT_BYTES))
        table = cls.open(beside)
        beside.replace(path)
        return table

    @classmethod
    def open(cls, path: Path) -> "CallTable":
        """An existing table. Raises SourceDown if the file is none."""
        try:
            with path.open("r+b") as file:
                mapped = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError) as error:
            raise SourceDown(f"{path}: cannot map the call table: {error}") from error
        magic, slots, _, _ = _HEAD.unpack_from(mapped)
        if magic != MAGIC or len(mapped) != (slots + 1) * _SLOT_BYTES:
            raise SourceDown(f"{path}: not a call table of this version")
        return cls(mapped, slots)

    def close(self) -> None:
        """Unmap."""
        self._map.close()

    def slot(self, number: int, gpu: str | None = None) -> "CallSlot":
        """The writing end of a slot, for the one thread that owns it."""
        return CallSlot(self._map, self._at(number), gpu)

    def under_way(self, number: int) -> Call | None:
        """The call that the owner of this slot is in."""
        at = self._at(number)
        began, allowed, _, gpu, call = _SLOT.unpack_from(self._map, at)
        if not began or _BEGAN.unpack_from(self._map, at)[0] != began:
            return None  # in no call, or just going from one to the next
        return Call(gpu.rstrip(b"\0").decode() or None, call.rstrip(b"\0").decode(), began, allowed)

    def calls(self, number: int) -> int:
        """How many calls the owner of this slot has begun."""
        return int(_SLOT.unpack_from(self._map, self._at(number))[2])

    def all_under_way(self) -> list[tuple[int, Call]]:
        """(slot, call) of every call under way, in slot order."""
        return [(number, call) for number in range(self.slots) if (call := self.under_way(number))]

    def _at(self, number: int) -> int:
        assert 0 <= number < self.slots, number
        return (number + 1) * _SLOT_BYTES


class CallSlot:
    """A slot's writer: ``begin`` before a driver call, ``end`` after it, by one thread only.

    It is passed thousands of times a minute: times and counts are stored as whole words, the name only if it differs
    from that of the call before.
    """

    def __init__(self, mapped: mmap.mmap, at: int, gpu: str | None) -> None:
        _SLOT.pack_into(mapped, at, 0, 0.0, 0, (gpu or "").encode()[:47], b"")
        whole = memoryview(mapped)
        self._began = whole[at : at + 8].cast("Q")
        self._allowed = whole[at + 8 : at + 16].cast("d")
        self._begun = whole[at + 16 : at + 24].cast("Q")
        self._name = whole[at + _NAME_AT : at + _SLOT_BYTES]
        self._said = ""
        self._names: dict[str, bytes] = {}

    def begin(self, call: str, allowed_s: float = 0.0) -> None:
        """The thread is about to make this call."""
        if call is not self._said:
            name = self._names.get(call)
            if name is None:
                name = self._names[call] = call.encode()[:55].ljust(56, b"\0")
            self._name[:] = name
            self._said = call
        self._allowed[0] = allowed_s
        self._begun[0] += 1
        self._began[0] = time.monotonic_ns()

    def end(self) -> None:
        """The call came back."""
        self._began[0] = 0
