"""Starting and ending replicas as units of their own: what may be started, and how often, is for root to say."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agent.replicas.record import UNIT_PREFIX, unit_of
from agent.roothelper.config import ReplicaConfig, check_owner
from agent.roothelper.devices import node_of, nodes, of_slice
from agent.roothelper.limits import Ledger
from agent.roothelper.requests import (
    AnyReplicaRequest,
    AnyReply,
    ClearReplica,
    Denied,
    Done,
    EndReplica,
    ReadReplica,
    Started,
    StartReplica,
)
from agent.roothelper.systemd import Units
from agent.roothelper.unit import Unit, made_of
from vocab.clock import Clock
from vocab.errors import ConfigError

log = logging.getLogger(__name__)

WAIT_S = 30.0  # for a start before it; eight of a node come at once after a boot, a tenth of a second each


class ReplicaDuty:
    """The replicas' part of the helper. ``proc`` is /proc, where the driver tells which node is which GPU.

    To end one is never refused nor counted: whoever may drain a replica can end its work anyhow.
    """

    def __init__(
        self, units: Units, allowed: ReplicaConfig, ledger: Ledger, clock: Clock, proc: Path = Path("/proc")
    ) -> None:
        self._units = units
        self._allowed = allowed
        self._ledger = ledger
        self._clock = clock
        self._proc = proc
        self._starts = threading.Lock()  # one start at a time, so that two of one name, or one too many, cannot be

    def perform(self, request: AnyReplicaRequest) -> AnyReply:
        """Do what is asked, or say why not. Raises InputError for what is not allowed, OSError for what breaks."""
        match request:
            case StartReplica():
                with self._turn() as free:
                    return self._start(request) if free else Denied(why="another replica is being started: again soon")
            case EndReplica():
                return self._end(unit_of(request.replica), kill=request.kill)
            case ReadReplica():
                return self._read(unit_of(request.replica))
            case ClearReplica():
                return self._clear(unit_of(request.replica))

    @contextmanager
    def _turn(self) -> Iterator[bool]:
        free = self._starts.acquire(timeout=WAIT_S)
        try:
            yield free
        finally:
            if free:
                self._starts.release()

    def _start(self, request: StartReplica) -> AnyReply:
        unit = made_of(request, self._allowed, self._devices(request))
        try:
            check_owner(Path(unit.argv[0]), "the program of a replica")
        except ConfigError as error:
            return Denied(why=str(error))
        before = self._units.read(unit.name)
        if before.runs:
            self._end(unit.name, kill=False)
            return Denied(why=f"{unit.name} still runs, as process {before.pid}: it was told to end")
        running = self._units.running(UNIT_PREFIX)
        if running >= self._allowed.most:
            return Denied(why=f"{running} replicas run here already, and replicas.most is {self._allowed.most}")
        now = self._clock.now()
        refusal = self._ledger.charge("start_replica", (request.replica,), now)
        refusal = refusal or self._ledger.charge("start_replicas", ("",), now)
        if refusal is not None:
            return Denied(why=refusal)
        if before.known:
            self._units.clear(unit.name)
        return self._started(unit)

    def _started(self, unit: Unit) -> AnyReply:
        log.warning("start_replica", extra={"unit": unit.name, "command": " ".join(unit.argv)})
        reply = self._units.start(unit)
        if not isinstance(reply, Done):
            self._units.clear(unit.name)
            return reply
        return Started(pid=self._units.read(unit.name).pid)

    def _devices(self, request: StartReplica) -> dict[str, tuple[str, ...]]:
        """The nodes of its GPUs, and of the parts of them that are named. Raises InputError."""
        known = nodes(self._proc)
        found: dict[str, tuple[str, ...]] = {gpu: (node_of(gpu, known),) for gpu in request.gpus}
        for part in request.slices:
            node = node_of(part.gpu, known)
            found[part.gpu] = (*found.get(part.gpu, (node,)), *of_slice(self._proc, node, part.gi, part.ci))
        return found

    def _end(self, name: str, *, kill: bool) -> AnyReply:
        run = self._units.read(name)
        if not run.known:
            return Done()
        log.warning("end_replica", extra={"unit": name, "kill": kill})
        leads = run.runs and run.code is None and run.signal is None
        return self._units.signal(name, "SIGKILL" if kill else "SIGTERM", "main" if leads and not kill else "all")

    def _read(self, name: str) -> AnyReply:
        run = self._units.read(name)
        if not run.known or run.runs:
            return run
        return msgspec.structs.replace(run, log=self._units.log(name))

    def _clear(self, name: str) -> AnyReply:
        run = self._units.read(name)
        if run.runs:
            return Denied(why=f"{name} still runs")
        return self._units.clear(name) if run.known else Done()
