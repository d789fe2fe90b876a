"""What a GPU read in the last hour, from what its agent has recorded. Nothing of it is kept but for a few seconds."""

import asyncio
from collections.abc import Iterator
from weakref import WeakValueDictionary

import msgspec

from controller.evidence.records import AgentRecords
from controller.pages.charts import Point
from vocab.clock import Clock
from vocab.readings import Readings

HOUR_S = 3600.0
KEPT_S = 15.0  # people look at several GPUs of one node, one after the other
MOST = 4  # recordings that are kept, a few MiB each
AT_ONCE = 8  # ... and that are under way: a large one may have 64 MiB, an agent may be slow


class _Head(msgspec.Struct):
    """The little of a line that says whether it is a reading of the GPU."""

    obs: str
    at: float = 0.0
    gpu: str | None = None
    index: int | None = None
    pci: str | None = None
    readings: Readings | None = None


class Place(msgspec.Struct, frozen=True):
    """A GPU as recordings name it: by UUID, by its index or by its PCI address."""

    uuid: str
    index: int
    pci: str

    def marks(self) -> tuple[bytes, ...]:
        """One of these stands in each line about it."""
        return (f'"{self.uuid}"'.encode(), f'"index":{self.index}'.encode(), f'"{self.pci}"'.encode())

    def is_of(self, head: _Head) -> bool:
        """Whether a line is about it."""
        return head.gpu == self.uuid or head.pci == self.pci or (head.gpu is None and head.index == self.index)


class Recent:
    """The recordings of agents, asked for once for all GPUs of a node."""

    def __init__(self, agents: AgentRecords, clock: Clock) -> None:
        self._agents = agents
        self._clock = clock
        self._kept: dict[str, tuple[float, bytes]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by address

    async def of(self, address: str, place: Place) -> list[Point]:
        """What was read of a GPU, oldest first. Raises Unreachable, in words for people."""
        asking = self._asking.setdefault(address, asyncio.Lock())  # many pages may be open: one asks for all
        async with asking, self._room:
            raw = await self._recording(address)
        return await asyncio.to_thread(lambda: list(points(raw, place)))

    async def _recording(self, address: str) -> bytes:
        now = self._clock.monotonic()
        self._kept = {name: each for name, each in self._kept.items() if now - each[0] < KEPT_S}
        found = self._kept.get(address)
        if found is not None:
            return found[1]
        raw = await self._agents.recording(address)
        while len(self._kept) >= MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[address] = (now, raw)
        return raw


def points(raw: bytes, place: Place) -> Iterator[Point]:
    """The readings of a GPU in a recording; a line that is torn or of another form is passed over."""
    decoder, marks = msgspec.json.Decoder(_Head), place.marks()
    for line in raw.splitlines():
        if b'"gpu"' not in line or not any(mark in line for mark in marks):
            continue
        try:
            head = decoder.decode(line)
        except msgspec.DecodeError:
            continue
        if head.obs == "gpu" and head.readings is not None and place.is_of(head):
            yield head.at, head.readings
