"""Starting a replica: port, intent on disk, process, record on disk.

A crash of the agent between any two of these is found again by adoption. A start that fails gives a record
that has ended, so that it counts as a try.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from agent.replicas import identity, ports
from agent.replicas.cgroup import leader
from agent.replicas.launch import HOST, Launch, Spawn, command, environment
from agent.replicas.record import Folder, ReplicaRecord, marks, unit_of
from agent.replicas.replica import Replica
from agent.replicas.steps import Start
from agent.replicas.units import Units
from vocab.clock import Clock
from vocab.errors import ConfigError, Refused, Unreachable
from vocab.observations import Exit


class Starter:
    """Starts the replicas of one node; ``program`` is what an engine's flags are given to."""

    def __init__(
        self,
        run_dir: Path,
        clock: Clock,
        base_port: int,
        program: Sequence[str],
        spawn: Spawn,
        inherited: Mapping[str, str],
        boot: str,
        *,
        cpu: bool,
        group: int | None = None,
        node: str = "",
    ) -> None:
        self._node = node
        self._run_dir = run_dir
        self._clock = clock
        self._base_port = base_port
        self._program = program
        self._spawn = spawn
        self._inherited = inherited
        self._boot = boot
        self._cpu = cpu
        self._group = group
        self._promised: set[int] = set()  # ports of units that are being started
        self._rested: dict[int, float] = {}  # ports of ended replicas, and when (monotonic) they ended

    def start(self, step: Start, before: Replica | None, taken: Collection[int]) -> Replica:
        """Start a process for the step; a replica that has ended if that cannot be done.

        ``before`` is what is known of the replica's last process, ``taken`` the ports of the others.
        """
        folder = Folder(self._run_dir, step.replica)
        folder.make()
        record = self._blank(step, before)
        try:
            record = self._spawned(folder, record, self._port(before, taken))
        except ConfigError as error:
            return self._failed(folder, record, Exit(reason="crash_loop", text=str(error)))
        except (OSError, Refused) as error:
            return self._failed(folder, record, Exit(reason="cannot start", text=str(error)))
        folder.record(record)
        return Replica(folder, record)

    @property
    def makes_units(self) -> bool:
        """Whether replicas are started as units, whose user's group may write their beats."""
        return self._group is not None

    async def start_unit(self, units: Units, step: Start, before: Replica | None, taken: Collection[int]) -> Replica:
        """The same as ``start``, as a unit of systemd. Its command line is made by whoever starts it."""
        folder = Folder(self._run_dir, step.replica)
        folder.make()
        record = msgspec.structs.replace(self._blank(step, before), unit=unit_of(step.replica))
        port = 0
        try:
            port = self._port(before, {*taken, *self._promised})
            self._promised.add(port)
            record = await self._lodged(units, folder, record, port)
        except (OSError, Refused, Unreachable) as error:
            return self._failed(folder, record, Exit(reason="cannot start", text=str(error)))
        finally:
            self._promised.discard(port)
        folder.record(record)
        return Replica(folder, record)

    async def _lodged(self, units: Units, folder: Folder, record: ReplicaRecord, port: int) -> ReplicaRecord:
        assert self._group is not None
        record = msgspec.structs.replace(record, port=port, url=f"http://{HOST}:{port}")
        folder.lend(self._group)
        folder.intend(record)
        folder.turn_log()
        try:
            pid = await units.start(record)
        except Unreachable:
            found = leader(record.unit or "", self._boot)  # it may have been started all the same
            if found is None:
                raise
            pid = found.pid
        stat = identity.stat(pid)
        return msgspec.structs.replace(record, pid=pid, start_s=stat.start_s if stat is not None else 0.0)

    def rest(self, port: int) -> None:
        """A replica that had this port has ended."""
        self._rested[port] = self._clock.monotonic()

    def _blank(self, step: Start, before: Replica | None) -> ReplicaRecord:
        spec = step.spec
        same_order = before is not None and before.record.token == spec.token
        return ReplicaRecord(
            replica=spec.replica,
            deployment=spec.deployment,
            members=spec.members,
            pid=None,
            start_s=None,
            boot_id=self._boot,
            port=0,
            url="",
            token=spec.token,
            attempt=before.record.attempt + 1 if before is not None and same_order else 1,
            spec=spec,
            began=self._clock.monotonic(),
            crashes=step.crashes,
            node=self._node,
        )

    def _port(self, before: Replica | None, taken: Collection[int]) -> int:
        """The port of its own last process if that is free, so that its address stays; else a new one."""
        now = self._clock.monotonic()
        self._rested = {port: at for port, at in self._rested.items() if now - at < ports.RESTS_S}
        own = before.record.port if before is not None else 0
        if own and own not in taken and ports.is_free(own):
            return own
        return ports.choose(self._base_port, taken, self._rested)

    def _spawned(self, folder: Folder, record: ReplicaRecord, port: int) -> ReplicaRecord:
        record = msgspec.structs.replace(record, port=port, url=f"http://{HOST}:{port}")
        spec, group = record.share, record.group
        argv = command(spec, folder, port, self._program, cpu=self._cpu, group=group)
        env = environment(spec, self._inherited, marks(record.replica, folder.beat), cpu=self._cpu, group=group)
        folder.intend(record)
        folder.turn_log()
        pid = self._spawn(Launch(argv, env, folder.log))
        stat = identity.stat(pid)
        if stat is None:
            raise ProcessLookupError(f"the process ended at once; see {folder.log}")
        return msgspec.structs.replace(record, pid=pid, start_s=stat.start_s)

    def _failed(self, folder: Folder, record: ReplicaRecord, exit_: Exit) -> Replica:
        now = self._clock.monotonic()
        record = msgspec.structs.replace(record, ended_at=now, crashes=(*record.crashes, now), exit=exit_)
        folder.end(record)
        return Replica(folder, record)
