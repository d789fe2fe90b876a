"""The executor within the agent: what it needs from the parts around it, and what they hear from it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from agent.diag.diag import Diag
from agent.executor.evidence import Evidence
from agent.executor.executor import Executor
from agent.executor.journal import Entry, Journal
from agent.executor.work import Work
from agent.export import Export
from agent.hardware import Hardware
from agent.latest import Latest
from agent.loop import Loop
from agent.replicas.identity import family
from agent.replicas.supervisor import Supervisor
from agent.warden import Warden
from vocab.clock import Clock
from vocab.messages import ActionItem, Order
from vocab.observations import AnyObservation, Check, GpuSample
from vocab.states import ActionKind, ActionState, Level


class Hands:
    """One node's executor, joined to the loop. Raises InputError if its journal cannot be read."""

    def __init__(
        self,
        *,
        node: str,
        level: Level,
        state_dir: Path,
        pause_file: Path,
        clock: Clock,
        hardware: Hardware,
        loop: Loop,
        latest: Latest,
        supervisor: Supervisor,
        warden: Warden,
        export: Export,
        diag: Diag,
    ) -> None:
        self._export = export
        self._node = node
        self._clock = clock
        self._hardware = hardware
        self._loop = loop
        self._latest = latest
        self._supervisor = supervisor
        self._warden = warden
        self._diag = diag
        self._journal = Journal(state_dir / "repairs.json")
        self._helper = hardware.helper()
        self._evidence = Evidence(state_dir / "evidence", self._helper, hardware.kernel_log, self._readings)
        self._executor = Executor(
            self._work,
            level=level,
            clock=clock,
            paused=lambda: warden.is_paused or pause_file.exists(),
            report=self._report,
            learnt=self._learnt,
            settle_s=hardware.slow_s,
        )

    def _work(self, objection: Callable[[Entry], str | None]) -> Work:
        return Work(
            journal=self._journal,
            helper=self._helper,
            around=self,
            evidence=self._evidence,
            clock=self._clock,
            objection=objection,
        )

    async def run(self) -> None:
        """Finish what was begun, then carry out orders, until cancelled."""
        if self._warden.desired is not None:
            self._executor.take(self._warden.desired.orders, old=True)
        await self._executor.run()

    def order(self, orders: Sequence[Order]) -> None:
        """All orders that stand for this node."""
        self._executor.take(orders)

    def _report(self, order: Order, state: ActionState, why: str) -> None:
        item = ActionItem(
            at=self._clock.now(),
            node=self._node,
            id=order.id,
            of=order.of,
            token=order.token,
            state=state,
            gpu=order.gpu,
            error=why or None,
        )
        if state is not ActionState.RUNNING:
            self._export.count("corral_agent_repairs_total", of=order.of.value, state=state.value)
        self._loop.answer(item)

    def _learnt(self, able: tuple[ActionKind, ...]) -> None:
        self._latest.abilities = able
        self._loop.wake_uplink()

    def _readings(self) -> bytes:
        return msgspec.json.encode({gpu: view.sample for gpu, view in self._latest.gpus.items()})

    # -- what a procedure asks of its surroundings ------------------------------------------------------

    @property
    def boot_id(self) -> str:
        """Of the node, as it runs now."""
        return self._hardware.boot_id

    def gpus(self) -> tuple[str, ...]:
        """Of the inventory."""
        return tuple(gpu.uuid for gpu in self._latest.seen.gpus) if self._latest.seen else ()

    def sample(self, gpu: str) -> GpuSample | None:
        """The last reading of a GPU."""
        view = self._latest.gpus.get(gpu)
        return view.sample if view is not None else None

    async def diagnose(self, gpu: str) -> tuple[Check, ...]:
        """The active checks that may run on it now."""
        return await self._diag.validate(gpu)

    def driver_pids(self) -> frozenset[int]:
        """Our own children that have the driver open."""
        return self._hardware.driver_pids() | self._diag.pids()

    def replica_pids(self) -> frozenset[int]:
        """The processes of the replicas that we started."""
        leaders = [record.pid for record in self._supervisor.records() if record.pid is not None]
        return frozenset(pid for leader in leaders for pid in family(leader))

    async def let_go(self) -> None:
        """End our own children that have the driver open."""
        await self._diag.rest("a repair of the node needs the driver")
        await self._hardware.let_go()

    def take_up(self) -> None:
        """Start them again."""
        self._diag.wake()
        self._hardware.take_up()

    def go_down(self) -> None:
        """The node is about to boot: replicas leave, and none is started."""
        self._warden.leave(going=True)

    def stay_up(self) -> None:
        """It does not boot after all."""
        self._warden.leave(going=False)

    def take(self, observation: AnyObservation) -> None:
        """Judge what was seen."""
        self._loop.take(observation)

    def was_reset(self, gpus: tuple[str, ...]) -> None:
        """The inventory says it, as a recording does."""
        if self._latest.seen is not None:
            self._loop.take(msgspec.structs.replace(self._latest.seen, at=self._clock.now(), reset=gpus))
