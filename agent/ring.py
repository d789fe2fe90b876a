"""The ring: the raw observations of late, as a recording, in a bounded space on the node's disk.

What the judge was given goes in, in its order, so that ``corral replay`` of it takes the same decisions. The newest
file is plain text and holds all but the last seconds; older ones are packed, and the oldest go when the space is
full. Each file begins with the inventory and so stands alone. A ring that cannot be written says so once and is
nobody's concern else. It holds no prompt and no answer of any request.
"""

import logging
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vocab.messages import ActionItem, FenceItem, Item
from vocab.observations import ActionSeen, AnyObservation, NodeSeen, Restart
from vocab.states import ActionState

log = logging.getLogger(__name__)

MOST_BYTES = 512 * 1024  # of a plain file: packing it stops the loop for some 5 ms
FLUSH_S = 5.0  # what a killed agent may lose
PLAIN, PACKED = ".jsonl", ".jsonl.z"
AGENT = "agent"  # ``by`` of what this agent did by itself
FENCES = {"placed": ("fence", "done"), "refused": ("fence", "refused")}  # all other words end one
STATES = {ActionState.RUNNING: "accepted", ActionState.TIMED_OUT: "failed"}  # a recording's words


class Ring:
    """Bounded by ``limit_bytes`` on disk; 0 keeps nothing."""

    def __init__(self, folder: Path, limit_bytes: int, node: str) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._node = node
        self._last = float("-inf")
        self._flushed = float("-inf")
        self._inventory: NodeSeen | None = None
        self._buffer: list[bytes] = []
        self._held = 0  # bytes of the buffer and of the newest file
        self._number = 0
        self._broken = limit_bytes <= 0
        self._guarded_open()

    # -- what comes in ----------------------------------------------------------------------------------

    def add(self, observation: AnyObservation) -> None:
        """Keep one observation. Time never goes back in a recording, even if the wall clock does."""
        if self._broken:
            return
        if observation.at < self._last:
            observation = msgspec.structs.replace(observation, at=self._last)
        if isinstance(observation, NodeSeen):
            self._inventory = observation
        self._last = observation.at
        self._put(observation)
        if self._held >= MOST_BYTES or observation.at - self._flushed >= FLUSH_S:
            self.flush()

    def acted(self, item: Item) -> None:
        """Keep what the agent did by itself (a fence), or answered to an order."""
        if isinstance(item, FenceItem):
            of, state = FENCES.get(item.op, ("unfence", "done"))
            self.add(
                ActionSeen(at=item.at, node=self._node, of=of, gpu=item.gpu, state=state, error=item.why, by=AGENT)
            )
        elif isinstance(item, ActionItem):
            self.add(
                ActionSeen(
                    at=item.at, node=self._node, of=item.of, gpu=item.gpu, replica=item.replica,
                    state=STATES.get(item.state, item.state), error=item.error,
                )
            )  # fmt: skip

    def _put(self, observation: AnyObservation) -> None:
        line = msgspec.json.encode(observation) + b"\n"
        self._buffer.append(line)
        self._held += len(line)

    # -- what goes out ----------------------------------------------------------------------------------

    def lines(self) -> Iterator[bytes]:
        """The recording, in pieces of whole lines, oldest first. Raises OSError if it cannot be read."""
        if self._broken:
            return
        self.flush()
        for path in self._files():
            try:
                yield _read(path)
            except FileNotFoundError:  # it was the oldest, and had to make room since
                continue

    # -- the disk ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Bring to disk what is in memory."""
        if self._broken or not self._buffer:
            return
        try:
            with self._newest.open("ab") as file:
                file.writelines(self._buffer)
            self._buffer.clear()
            self._flushed = self._last
            if self._held >= MOST_BYTES:
                self._turn()
        except OSError as error:
            self._give_up(error)

    @property
    def _newest(self) -> Path:
        return self._folder / f"{self._number:08d}{PLAIN}"

    def _turn(self) -> None:
        """Pack the newest file, drop the oldest, begin another with the inventory."""
        self._pack(self._newest)
        files = self._files()
        sizes = [path.stat().st_size for path in files]
        while len(files) > 1 and sum(sizes) + MOST_BYTES > self._limit:
            files.pop(0).unlink()
            sizes.pop(0)
        self._number += 1
        self._held = 0
        if self._inventory is not None:
            self._put(msgspec.structs.replace(self._inventory, at=self._last))

    def _guarded_open(self) -> None:
        if self._broken:
            return
        try:
            self._open()
        except OSError as error:
            self._give_up(error)

    def _open(self) -> None:
        """Go on after what an earlier life left, without its torn last line; a line says that this is another life."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in self._files():
            if path.name.endswith(PLAIN):
                _mend(path)
                self._pack(path)
        left = self._files()
        self._number = 1 + (int(left[-1].name.partition(".")[0]) if left else 0)
        lines = _read(left[-1]).splitlines() if left else []
        if lines:
            self._last = msgspec.json.decode(lines[-1], type=_When).at
            self._put(Restart(at=self._last, node=self._node, of="agent", kept=True))

    def _pack(self, path: Path) -> None:
        packed = path.with_name(path.name.removesuffix(PLAIN) + PACKED)
        half = packed.with_suffix(".half")
        half.write_bytes(zlib.compress(path.read_bytes(), 1))
        half.rename(packed)
        path.unlink()

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.name.endswith((PLAIN, PACKED)))

    def _give_up(self, error: OSError) -> None:
        self._broken = True
        self._buffer.clear()
        log.warning("no recording is kept any more", extra={"folder": str(self._folder), "error": str(error)})


class _When(msgspec.Struct):
    at: float


def _read(path: Path) -> bytes:
    raw = path.read_bytes()
    return zlib.decompress(raw) if path.name.endswith(PACKED) else raw


def _mend(path: Path) -> None:
    """Cut a torn last line off."""
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if whole != raw:
        path.write_bytes(whole)
