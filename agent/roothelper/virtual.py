"""A virtual node: the same verbs, for real, on the file that is its silicon and on services that it pretends to have.

A service that runs keeps every GPU open, as its real counterpart does, so a reset without stopping it fails. A reboot
ends every replica, empties what a boot empties, and gives the node a new boot id, last of all.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent.replicas.identity import Identity, alive, boot_id, send_to_session
from agent.replicas.record import Folder, ReplicaRecord, known
from agent.roothelper.requests import OWN_UNIT, AnyReply, Denied, Done, Failed, Holder
from agent.virtual import lifecycle
from agent.virtual.state import VirtualState
from vocab.errors import InputError, Refused
from wire.disk import write_durably

VERBS = ("reset", "reboot", "services")
SERVICES = ("dcgm-exporter.service", "nvidia-dcgm.service", "nvidia-persistenced.service")
GRACE_S = 5.0  # between TERM and KILL of the replicas at a reboot
POLL_S = 0.05


class Services(msgspec.Struct):
    """The made-up services that run, and who else is in the way: a test or a drill may write this file."""

    active: list[str] = msgspec.field(default_factory=lambda: list(SERVICES))
    users: list[str] = []
    inhibitors: list[str] = []


class VirtualMachine:
    """The node in the file ``state``; its services lie beside it."""

    verbs = VERBS

    def __init__(self, state: Path) -> None:
        self._path = state
        self._state = VirtualState.open(state)
        self._services = services_file(state)

    def close(self) -> None:
        """Let the file go."""
        self._state.close()

    def holders(self, gpus: tuple[str, ...]) -> tuple[Holder, ...]:
        """Living processes of the driver's list, and the services that run. Raises InputError for another's GPU."""
        slots = [self._slot(uuid) for uuid in gpus]
        return (*self._clients(gpus, slots), *self._keepers(gpus))

    def _clients(self, gpus: tuple[str, ...], slots: list[int]) -> Iterator[Holder]:
        seen: dict[int, list[str]] = {}
        for uuid, slot in zip(gpus, slots, strict=True):
            gpu = self._state.gpus[slot]
            for row in gpu.processes[: gpu.process_count]:
                seen.setdefault(int(row.pid), []).append(uuid)
        ours = {record.pid for record in self._records()}
        for pid, held in sorted(seen.items()):
            if _lives(pid):
                unit = OWN_UNIT if pid in ours else None
                yield Holder(pid=pid, name=_name(pid), gpus=tuple(held), unit=unit)

    def _records(self) -> list[ReplicaRecord]:
        folders = (Folder(self._path.parent, name) for name in known(self._path.parent))
        return [record for folder in folders if (record := folder.recorded()) and record.pid is not None]

    def _keepers(self, gpus: tuple[str, ...]) -> Iterator[Holder]:
        for unit in self._read().active if gpus else ():
            yield Holder(pid=0, name=unit.removesuffix(".service"), gpus=gpus, unit=unit)

    def _slot(self, uuid: str) -> int:
        for slot, gpu in enumerate(self._state.gpus):
            if gpu.uuid.decode() == uuid:
                return slot
        raise InputError(f"{uuid} is not a GPU of {self._state.node}")

    def gpus(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(gpu.uuid.decode() for gpu in self._state.gpus)

    def is_active(self, unit: str) -> bool:
        """Whether it runs."""
        return unit in self._read().active

    def stop(self, unit: str) -> AnyReply:
        """It runs no more."""
        services = self._read()
        services.active = [each for each in services.active if each != unit]
        return self._write(services)

    def start(self, unit: str) -> AnyReply:
        """It runs."""
        services = self._read()
        services.active = [*(each for each in services.active if each != unit), unit]
        return self._write(services)

    def _read(self) -> Services:
        try:
            return msgspec.json.decode(self._services.read_bytes(), type=Services)
        except FileNotFoundError:
            return Services()
        except msgspec.DecodeError as error:
            raise InputError(f"{self._services}: not the services of a virtual node: {error}") from error

    def _write(self, services: Services) -> AnyReply:
        write_durably(self._services, msgspec.json.encode(services))
        return Done()

    def users(self) -> tuple[str, ...] | None:
        """As the file says."""
        return tuple(f"{name} is logged in" for name in self._read().users)

    def inhibitors(self) -> tuple[str, ...] | None:
        """As the file says."""
        return tuple(f"{name} forbids a shutdown" for name in self._read().inhibitors)

    def collect(self, order: str, limit_s: float) -> AnyReply:
        """A virtual board has nothing to tell its vendor."""
        return Denied(why="a virtual node has no bug report")

    def report(self, order: str, offset: int) -> AnyReply:
        """None was taken."""
        return Denied(why="a virtual node has no bug report")

    def reset(self, gpus: tuple[str, ...]) -> AnyReply:
        """What a reset does to the silicon."""
        try:
            for uuid in gpus:
                gpu = self._state.gpus[slot := self._slot(uuid)]
                if not any(True for _ in self._clients((uuid,), [slot])):
                    gpu.process_count = 0  # rows of processes that have ended
                lifecycle.reset_gpu(self._state, slot)
        except Refused as error:
            return Failed(why=str(error))
        return Done()

    def reboot(self) -> AnyReply:
        """End the replicas and forget them, as a boot empties /run; services start; the new boot id comes last."""
        self._end_replicas()
        self._services.unlink(missing_ok=True)
        lifecycle.reboot(self._state)
        return Done()

    def _end_replicas(self) -> None:
        boot, records = boot_id(), self._records()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for record in records:
                send_to_session(record.identity, record.mark, number, boot)
            _wait([record.identity for record in records], boot, GRACE_S)
        for name in known(self._path.parent):
            Folder(self._path.parent, name).forget()


def services_file(state: Path) -> Path:
    """Where a virtual node keeps its services."""
    return state.with_name("virtual.services.json")


def _wait(processes: list[Identity], boot: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(alive(process, boot) for process in processes):
        time.sleep(POLL_S)


def _lives(pid: int) -> bool:
    """Whether the process is there and not just waiting to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat[stat.rindex(b")") + 2 :][:1] not in b"ZX" and pid != os.getpid()


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "?"
