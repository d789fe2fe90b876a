"""The executor within the agent: what it needs from the parts around it, and what they hear from it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from agent.diag.diag import Diag
from agent.executor.evidence import Evidence
from agent.executor.executor import Executor
from agent.executor.journal import Entry, Journal
from agent.executor.site_units import SiteUnits
from agent.executor.unit_book import UnitBook
from agent.executor.work import Work
from agent.export import Export
from agent.hardware import Hardware
from agent.latest import Latest
from agent.loop import Loop
from agent.observed.source import ObservedSource
from agent.replicas.door import Door
from agent.replicas.identity import family
from agent.replicas.supervisor import Supervisor
from agent.warden import Warden
from vocab.clock import Clock
from vocab.messages import ActionItem, Order
from vocab.observations import AnyObservation, Check, GpuSample
from vocab.states import ActionKind, ActionState, Level

REPAIRS = frozenset({ActionKind.RESET_GPU, ActionKind.REBOOT_NODE, ActionKind.VALIDATE})


class _Doors:
    """The doors of engines on this node, each opened when it is needed."""

    async def close(self, url: str) -> bool:
        """Have it admit nobody new."""
        async with Door() as door:
            return (await door.close(url, "draining")).taken

    async def reopen(self, url: str) -> None:
        """Have it admit again."""
        async with Door() as door:
            await door.reopen(url)


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
        observed: ObservedSource | None = None,
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
        self._units = SiteUnits(
            UnitBook(state_dir / "units.json"),
            self._helper,
            seen=observed.statuses if observed is not None else tuple,
            has_looked=observed.has_looked if observed is not None else bool,
            boot_id=hardware.boot_id,
            level=level if observed is not None else Level.OBSERVE,
            clock=clock,
            paused=lambda: warden.is_paused or pause_file.exists(),
            report=self._report,
            learnt=self._learnt_units,
            door=_Doors(),
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
            self._take(self._warden.desired.orders, old=True)
        await self._executor.run()

    @property
    def evidence(self) -> Evidence:
        """What was taken of faults."""
        return self._evidence

    async def attend_units(self) -> None:
        """The same of what concerns units of the site."""
        await self._units.run()

    def takes(self, order: Order) -> bool:
        """Whether an order is for these hands."""
        return order.of in REPAIRS or self._units.takes(order)

    def order(self, orders: Sequence[Order]) -> None:
        """All orders that stand for this node."""
        self._take(orders, old=False)

    def _take(self, orders: Sequence[Order], *, old: bool) -> None:
        self._executor.take([order for order in orders if order.of in REPAIRS], old=old)
        self._units.take([order for order in orders if order.of not in REPAIRS and self._units.takes(order)], old=old)

    def _report(self, order: Order, state: ActionState, why: str) -> None:
        item = ActionItem(
            at=self._clock.now(),
            node=self._node,
            id=order.id,
            of=order.of,
            token=order.token,
            state=state,
            gpu=order.gpu,
            replica=order.replica,
            error=why or None,
        )
        if state is not ActionState.RUNNING:
            self._export.count("corral_agent_repairs_total", of=order.of.value, state=state.value)
        self._loop.answer(item)

    def _learnt(self, able: tuple[ActionKind, ...]) -> None:
        self._latest.abilities = able
        self._loop.wake_uplink()

    def _learnt_units(self, units: tuple[str, ...]) -> None:
        self._latest.units = units
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
