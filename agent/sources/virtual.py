"""The source of a virtual node: moves its physics by the replicas' beats, then reads it as NVML would.

One pass a second: what the replicas did since the last pass becomes load, the load becomes readings. What
blocks or fails in NVML (a hang switch, a lost GPU, a driver that is not loaded) looks the same here.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from agent.sources.nvml_errors import ERROR_NAMES, explain
from agent.sources.source import Emit
from agent.virtual.clients import FOLDER, clients
from agent.virtual.coupling import CONTEXT_BYTES, Activity, activity, together
from agent.virtual.motion import Held, advance
from agent.virtual.physics import Load
from agent.virtual.state import VirtualState
from agent.virtual.view import bus_of, identity_of, links_of, processes_of, readings_of
from vocab.beat import SIZE, Beat, unpack
from vocab.clock import Clock
from vocab.observations import AnyObservation, DriverCall, GpuSample, Member, NodeSeen, SourceState

PERIOD_S = 1.0
SLOW_S = 10.0  # links are read at this pace, or at once after a fault
INVENTORY_S = 60.0
BLOCKED_CALL = "nvmlDeviceGetFieldValues"  # what a hung driver would be found in


class ReplicaLike(Protocol):
    """What this source must know of a replica; records and statuses both have it."""

    @property
    def replica(self) -> str: ...  # noqa: D102

    @property
    def members(self) -> tuple[Member, ...]: ...  # noqa: D102

    @property
    def pid(self) -> int | None: ...  # noqa: D102


class VirtualSource:
    """Steps and reads the virtual node in ``state_path``; beats lie in ``replicas/ID/beat`` beside it.

    Raises InputError from the constructor if the file is no virtual node.
    """

    name = "virtual"

    def __init__(
        self, node: str, state_path: Path, clock: Clock, replicas: Callable[[], Sequence[ReplicaLike]] = tuple
    ) -> None:
        self._node = node
        self._clock = clock
        self._replicas = replicas
        self._folder = state_path.parent / "replicas"
        self._clients = state_path.parent / FOLDER
        self._state = VirtualState.open(state_path, clock=clock)
        self._board = self._state.board
        self._gpus = self._state.gpus  # blocks over the file, made once
        self._uuids = tuple(gpu.uuid.decode() for gpu in self._gpus)
        self._beats: dict[str, Beat] = {}
        self._last: float | None = None
        self._links: list[dict[str, Any]] = [{}] * len(self._gpus)
        self._links_at = (-1.0, -1)  # when read, and of which generation
        self._inventory: object = None
        self._inventory_at = 0.0
        self._said: str | None = None  # the error of the SourceState that stands
        self._up = False
        self._blocked: set[str | None] = set()  # calls that hang: a GPU's UUID, or None for all

    async def run(self, emit: Emit) -> None:
        """Observe once a period until cancelled."""
        due = self._clock.monotonic()
        while True:
            for observation in self.observe():
                emit(observation)
            due = max(due + PERIOD_S, self._clock.monotonic())
            await asyncio.sleep(due - self._clock.monotonic())

    def observe(self) -> list[AnyObservation]:
        """One pass: time since the last one goes by on the node, then everything is read."""
        self._move()
        return [*self._source_state(), *self._inventories(), *self._hangs(), *self._samples()]

    # what the replicas do to the hardware

    def _move(self) -> None:
        now = self._clock.monotonic()
        dt = now - self._last if self._last is not None else 0.0
        self._last = now
        work = self._work(dt)
        for gpu, uuid in zip(self._gpus, self._uuids, strict=True):
            if gpu.lost or gpu.removed:
                continue
            mine = work.get(uuid, ())
            load = together([did.load for _, did in mine]) if mine else Load()
            advance(gpu, self._board, load, [Held(pid, did.used_bytes) for pid, did in mine], dt)

    def _work(self, dt: float) -> dict[str, list[tuple[int, Activity]]]:
        work: dict[str, list[tuple[int, Activity]]] = {}
        beats: dict[str, Beat] = {}
        for replica in self._replicas():
            if replica.pid is None or not _runs(replica.pid):
                continue
            beat = self._beat(replica.replica)
            if beat:
                beats[replica.replica] = beat
            did = activity(self._beats.get(replica.replica), beat, len(replica.members), self._board, dt)
            for member in replica.members:
                if member.node == self._node:
                    work.setdefault(member.gpu, []).append((replica.pid, did))
        self._beats = beats
        for pid, client in clients(self._clients):
            if _runs(pid) and 0 <= client.gpu < len(self._uuids):
                busy = client.utilization
                load = Load(utilization=busy, sm_active=busy, dram=busy / 2, contexts=1)
                held = Activity(load, max(client.used_bytes, CONTEXT_BYTES))
                work.setdefault(self._uuids[client.gpu], []).append((pid, held))
        return work

    def _beat(self, replica: str) -> Beat | None:
        with suppress(OSError), (self._folder / replica / "beat").open("rb") as file:
            return unpack(file.read(SIZE)) or self._beats.get(replica)  # torn: the last whole one
        return None

    # what is read

    def _source_state(self) -> Iterator[AnyObservation]:
        block = self._state.block
        error = ERROR_NAMES.get(int(block.init_error), "UNKNOWN") if block.init_error else None
        if self._up and error == self._said:
            return
        self._up, self._said = True, error
        state = "down" if error else "up"
        yield SourceState(
            at=self._clock.now(), node=self._node, source="nvml", state=state, error=explain(error) if error else None
        )

    def _present(self) -> Iterator[tuple[int, int]]:
        """(index as the driver counts, slot of the file) of each GPU that is there."""
        return enumerate(slot for slot, gpu in enumerate(self._gpus) if not gpu.removed)

    def _inventories(self) -> Iterator[AnyObservation]:
        state, now = self._state, self._clock.monotonic()
        sign = (state.block.boot_id, self._said, tuple(gpu.removed for gpu in self._gpus))
        if sign == self._inventory and now - self._inventory_at < INVENTORY_S:
            return
        self._inventory, self._inventory_at = sign, now
        loaded = self._said != "DRIVER_NOT_LOADED"
        yield NodeSeen(
            at=self._clock.now(),
            node=self._node,
            boot_id=state.boot_id,
            boot_at=state.boot_at,
            driver=state.block.driver.decode() if loaded else None,
            library=state.block.library.decode(),
            virtual=True,
            period_s=PERIOD_S,
            gpus=tuple(identity_of(self._gpus[slot], index) for index, slot in self._present()),
            expected_gpus=len(self._gpus),
        )

    def _hangs(self) -> Iterator[AnyObservation]:
        """Driver calls that began to block or came back since the last pass."""
        hung: set[str | None] = {uuid for uuid, gpu in zip(self._uuids, self._gpus, strict=True) if gpu.hang}
        if self._state.block.hang:
            hung.add(None)
        for subject in sorted(hung ^ self._blocked, key=str):
            state = "started" if subject in hung else "returned"
            yield DriverCall(at=self._clock.now(), node=self._node, gpu=subject, call=BLOCKED_CALL, state=state)
        self._blocked = hung

    def _samples(self) -> Iterator[AnyObservation]:
        if self._said or None in self._blocked:
            return
        self._read_links()
        at = self._clock.now()
        for index, slot in self._present():
            gpu, uuid = self._gpus[slot], self._uuids[slot]
            if uuid in self._blocked:
                continue
            error = ERROR_NAMES.get(int(gpu.lost), "UNKNOWN") if gpu.lost else None
            yield GpuSample(
                at=at,
                node=self._node,
                gpu=uuid,
                index=index,
                pci=bus_of(gpu),
                readings=None if error else readings_of(gpu),
                links={} if error else self._links[slot],
                processes=None if error else processes_of(gpu),
                error=error,
                source="nvml",
            )

    def _read_links(self) -> None:
        now, generation = self._clock.monotonic(), int(self._state.block.generation)
        if now - self._links_at[0] >= SLOW_S or generation != self._links_at[1]:
            self._links = [links_of(gpu) for gpu in self._gpus]
            self._links_at = (now, generation)


def _runs(pid: int) -> bool:
    """Whether the process is there and not just waiting to be reaped."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat[stat.rindex(b")") + 2 :][:1] not in b"ZX"
    return False
