"""The loop that keeps the replicas of this node as Desired says: look, plan, do.

Processes are never killed because the agent stops: ``run`` ends, they live on, and ``adopt`` of the next
agent takes them over. Nothing here waits for a process or an engine: each order is a task with a deadline.

Order of calls at start: ``adopt``, then ``fence`` for each fence that stands, then ``converge``, then ``run``.
A fence that is not told before the first ``converge`` would be taken for one that was lifted.
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from agent.replicas import identity
from agent.replicas.adoption import take_over
from agent.replicas.ends import Ends
from agent.replicas.force import Force
from agent.replicas.launch import Spawn, spawn_detached
from agent.replicas.orders import Orders
from agent.replicas.plan import gpus, is_part, plan, same_process
from agent.replicas.record import Folder, ReplicaRecord, known, prune
from agent.replicas.replica import Replica
from agent.replicas.starter import Starter
from agent.replicas.steps import Drain, Fence, Forget, GiveUp, Kill, Start, Step, Terminate, Unfence, Withdraw
from agent.replicas.units import Lodging, Units
from vocab.clock import Clock
from vocab.messages import ReplicaSpec, ReplicaStatus
from vocab.observations import Check, Exit, ProcessSeen, ReplicaSeen

log = logging.getLogger(__name__)

TICK_S = 0.25  # while something is under way
CALM_S = 1.0  # the kernel tells of ends at once, and whoever wants something else wakes us
AGAIN_S = 0.1  # what was looked at a moment ago is not looked at again


class Supervisor:
    """The replicas of one node. All methods belong to the event loop's thread.

    ``program`` starts an engine (``python -m engine`` by default); ``cpu`` is true on a virtual node.
    """

    def __init__(
        self,
        run_dir: Path,
        clock: Clock,
        base_port: int,
        python: str = sys.executable,
        *,
        node: str = "",
        cpu: bool = True,
        program: Sequence[str] = (),
        spawn: Spawn = spawn_detached,
        inherited: Mapping[str, str] = os.environ,
        boot_id: str | None = None,
        units: Units | None = None,
        group: int | None = None,
    ) -> None:
        self._run_dir = run_dir.absolute()
        self._clock = clock
        self._node = node
        self._boot = boot_id or identity.boot_id()
        program = tuple(program) or (python, "-m", "engine")
        self._starter = Starter(
            self._run_dir, clock, base_port, program, spawn, inherited, self._boot, cpu=cpu, group=group, node=node
        )
        self._wake = asyncio.Event()
        self._units = units
        self._lodging = Lodging(units, self._wake.set) if units is not None else None
        farewell = self._lodging.farewell if self._lodging is not None else None
        self._orders = Orders(clock, self._wake.set, farewell)
        self._force = Force(clock, self._boot, self._lodging)
        self._ends = Ends(self._boot, self._ended)
        self._replicas: dict[str, Replica] = {}
        self._desired: tuple[ReplicaSpec, ...] | None = None
        self._fenced: frozenset[str] = frozenset()
        self._unreported: list[ReplicaSeen] = []
        self._runs = False

    # -- what the agent asks for ------------------------------------------------------------------------

    def adopt(self) -> tuple[str, ...]:
        """Take over the processes that an earlier agent of this boot left; the names of those that live."""
        now = self._clock.monotonic()
        for name in known(self._run_dir):
            folder = Folder(self._run_dir, name)
            record = take_over(folder, self._boot, now)
            if record is None:
                continue
            self._replicas[name] = replica = Replica(folder, record)
            if record.exit is not None and record.ended_at == now:
                self._report_end(replica)
            replica.look(self._boot, now)
        living = tuple(name for name, replica in sorted(self._replicas.items()) if replica.living)
        for name in living:
            log.info("replica adopted", extra={"replica": name, "pid": self._replicas[name].record.pid})
        return living

    def converge(self, specs: Sequence[ReplicaSpec]) -> None:
        """What should run from now on; what is not named is drained and stopped."""
        self._desired = tuple(specs)
        self._wake.set()

    def fence(self, gpu: str) -> None:
        """Replicas with a member on this GPU stop admitting, at once; none is started on it."""
        self._fenced |= {gpu}
        if self._runs:
            for step in self._steps():
                if isinstance(step, Fence):  # the rest has the time to look first
                    self._do(step)
        self._wake.set()

    def unfence(self, gpu: str) -> None:
        """The GPU may be used again."""
        self._fenced -= {gpu}
        self._wake.set()

    def restart(self, replica: str) -> bool:
        """End its whole session (SIGTERM, then SIGKILL) and start it anew in place; False if no process of it lives."""
        found = self._replicas.get(replica)
        if found is None or not found.living:
            return False
        log.warning("replica is restarted by order", extra={"replica": replica, "pid": found.record.pid})
        self._force.terminate(found)
        self._wake.set()
        return True

    @property
    def fenced(self) -> frozenset[str]:
        """The GPUs that are fenced."""
        return self._fenced

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        """Every replica that is wanted or lives, as the controller is told."""
        now = self._clock.monotonic()
        wanted = {spec.replica: spec for spec in self._desired or ()}
        there = (
            replica.status(wanted.get(name), now, restarting=self._restarting(replica, wanted.get(name)))
            for name, replica in self._replicas.items()
        )
        absent = (_not_started(spec) for name, spec in wanted.items() if name not in self._replicas)
        return tuple(sorted((*there, *absent), key=lambda status: status.replica))

    def observations(self, at: float) -> list[ReplicaSeen | ProcessSeen | Check]:
        """Every replica as it is at ``at`` (epoch seconds), and what its leader left behind where that has ended.

        Before them each end since the last call, once.
        """
        now = self._clock.monotonic()
        for replica in self._replicas.values():
            self._look_at(replica, now, TICK_S)
        wanted = {spec.replica: spec for spec in self._desired or ()}
        ends, self._unreported = self._unreported, []
        return [
            *(msgspec.structs.replace(end, at=at) for end in ends),
            *(
                replica.seen(at, self._node, now, restarting=self._restarting(replica, wanted.get(name)))
                for name, replica in sorted(self._replicas.items())
                if replica.living
            ),
            *(check for _, replica in sorted(self._replicas.items()) for check in replica.checks(at, self._node)),
            *(seen for _, replica in sorted(self._replicas.items()) for seen in replica.remains(at, self._node)),
        ]

    def records(self) -> tuple[ReplicaRecord, ...]:
        """The records of the processes that live."""
        return tuple(replica.record for _, replica in sorted(self._replicas.items()) if replica.living)

    def leaders(self) -> frozenset[int]:
        """The processes that were started for replicas, each the leader of its session; of those that ended, too."""
        pids = (replica.record.pid for replica in self._replicas.values())
        return frozenset(pid for pid in pids if pid is not None)

    # -- the loop ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the node as desired until cancelled. Processes live on."""
        async with self._orders, self._lodging or contextlib.nullcontext():
            self._runs = True
            try:
                while True:
                    self._wake.clear()
                    self._look()
                    self._keep_tokens()
                    for step in self._steps():
                        self._do(step)
                    await self._rest()
            finally:
                self._runs = False
                self._ends.close()

    async def _rest(self) -> None:
        if self._replicas or self._desired:
            calm = all(map(self._is_calm, self._replicas.values())) and not self._lacks()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CALM_S if calm else TICK_S):  # wait_for of 3.11 can swallow a cancellation
                    await self._wake.wait()
        else:
            await self._wake.wait()

    def _lacks(self) -> bool:
        """Whether something is to be started that has no process."""
        wanted = [spec for spec in self._desired or () if spec.phase == "run"]
        there = [self._replicas.get(spec.replica) for spec in wanted]
        pairs = zip(there, wanted, strict=True)
        return any(replica is None or self._restarting(replica, spec) for replica, spec in pairs)

    def _is_calm(self, replica: Replica) -> bool:
        """Whether a look a second is enough: nothing is under way with it, and its end is told."""
        name = replica.record.replica
        if not replica.living:
            return self._desired is None or name in {spec.replica for spec in self._desired}  # else it is forgotten
        return replica.is_calm(self._fenced) and self._ends.watch(name, replica.record.identity)

    def _look(self) -> None:
        """Look at each replica whose turn it is, and at its door."""
        now = self._clock.monotonic()
        for replica in self._replicas.values():
            self._look_at(replica, now, CALM_S if self._is_calm(replica) else AGAIN_S)
            if replica.living and replica.has_door:
                self._orders.probe_if_due(replica)

    def _look_at(self, replica: Replica, now: float, every_s: float) -> None:
        lived = replica.living
        if lived and now - replica.looked_at >= every_s - AGAIN_S:
            replica.look(self._boot, now)
        if replica.awaits_word and self._lodging is not None:
            self._lodging.ask(replica)
        if lived and not replica.living:
            self._report_end(replica)

    def _ended(self, replica: str) -> None:
        """The kernel says so."""
        self._look_at(self._replicas[replica], self._clock.monotonic(), 0.0)
        self._wake.set()

    def _keep_tokens(self) -> None:
        """A process that runs as it should goes on under the newest order."""
        for spec in self._desired or ():
            replica = self._replicas.get(spec.replica)
            if replica and replica.living and spec.phase == "run" and same_process(spec, replica.record.spec):
                replica.keep(token=spec.token)

    def _steps(self) -> tuple[Step, ...]:
        actual = tuple(replica.actual() for replica in self._replicas.values())
        return plan(self._desired, actual, self._fenced, self._clock.monotonic())

    def _do(self, step: Step) -> None:
        if self._lodging is not None and self._lodging.starts(step.replica):
            return
        match step:
            case Start():
                self._start(step)
            case Terminate():
                self._force.terminate(self._replicas[step.replica])
            case Kill():
                self._force.kill(self._replicas[step.replica])
            case GiveUp():
                self._give_up(self._replicas[step.replica])
            case Forget():
                self._forget(self._replicas[step.replica])
            case Fence() | Unfence() | Withdraw() | Drain():
                self._orders.give(step, self._replicas[step.replica])

    # -- instant steps ----------------------------------------------------------------------------------

    def _start(self, step: Start) -> None:
        if self._lodging is not None and self._starter.makes_units:
            self._lodging.start(step.replica, self._start_unit(step))
            return
        before = self._replicas.get(step.replica)
        self._started(self._starter.start(step, before, self._taken(before)))

    async def _start_unit(self, step: Start) -> None:
        assert self._units is not None
        before = self._replicas.get(step.replica)
        self._started(await self._starter.start_unit(self._units, step, before, self._taken(before)))

    def _taken(self, before: Replica | None) -> set[int]:
        """The ports of all others."""
        return {replica.record.port for replica in self._replicas.values() if replica is not before}

    def _started(self, replica: Replica) -> None:
        self._replicas[replica.record.replica] = replica
        if not replica.living:
            self._report_end(replica)
            return
        record = replica.record
        told = {"replica": record.replica, "pid": record.pid, "url": record.url, "attempt": record.attempt}
        log.info("replica started", extra=told)

    def _give_up(self, replica: Replica) -> None:
        replica.give_up()
        log.error("replica crashed too often: no more restarts", extra={"replica": replica.record.replica})

    def _forget(self, replica: Replica) -> None:
        del self._replicas[replica.record.replica]
        replica.folder.forget()
        if replica.record.unit is not None and self._lodging is not None:
            self._lodging.clear(replica.record.replica)
        prune(self._run_dir, frozenset(self._replicas))

    def _report_end(self, replica: Replica) -> None:
        record = replica.record
        self._ends.forget(record.replica)
        now = self._clock.monotonic()
        self._starter.rest(record.port)
        self._unreported.append(replica.seen(self._clock.now(), self._node, now, restarting=False))
        exit_ = record.exit or Exit()
        told = {"replica": record.replica, "code": exit_.code, "signal": exit_.signal, "reason": exit_.reason}
        log.log(logging.INFO if replica.asked else logging.WARNING, "replica ended", extra=told)

    def _restarting(self, replica: Replica, wanted: ReplicaSpec | None) -> bool:
        """Whether an ended replica will be started again without anybody's order."""
        if replica.living or wanted is None or wanted.phase != "run" or gpus(wanted) & self._fenced:
            return False
        given_up = replica.record.exit is not None and replica.record.exit.reason == "crash_loop"
        return not (given_up or is_part(wanted)) or wanted.token != replica.record.token


def _not_started(spec: ReplicaSpec) -> ReplicaStatus:
    """The status of a replica of which this node has nothing: to be started, or stopped already."""
    phase = "starting" if spec.phase == "run" else "stopped"
    return ReplicaStatus(
        replica=spec.replica,
        deployment=spec.deployment,
        members=spec.members,
        phase=phase,
        stepping=False,
        attempt=0,
        token=spec.token,
    )
