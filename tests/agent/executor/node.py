"""A node for the executor: a virtual one with its helper in this process, and what the agent around it would see."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent.executor.evidence import Evidence
from agent.executor.executor import Executor
from agent.executor.journal import Entry, Journal
from agent.executor.work import Work
from agent.roothelper.client import PATIENCE_S
from agent.roothelper.duty import Duty
from agent.roothelper.limits import Ledger
from agent.roothelper.requests import Able, AnyReply, AnyRequest
from agent.roothelper.virtual import SERVICES, VirtualMachine
from agent.virtual.state import VirtualState
from agent.virtual.view import links_of, readings_of
from vocab.clock import SystemClock
from vocab.errors import Unreachable
from vocab.messages import Order
from vocab.observations import AnyObservation, Check, GpuSample
from vocab.states import ActionKind, ActionState, Level

Told = tuple[str, ActionState, str]


class InProcess:
    """The helper without its socket. ``before`` is called before each request, ``after`` when it was done."""

    def __init__(self, duty: Duty) -> None:
        self.duty = duty
        self.asked: list[AnyRequest] = []
        self.before: Callable[[AnyRequest], None] = lambda _: None
        self.after: Callable[[AnyRequest], None] = lambda _: None
        self.gone = False
        self.instead: dict[type, AnyReply] = {}

    async def ask(self, request: AnyRequest) -> AnyReply:
        assert type(request) in PATIENCE_S
        if self.gone:
            raise Unreachable("nobody listens")
        self.before(request)
        self.asked.append(request)
        reply = self.instead.get(type(request)) or self.duty.perform(request)
        self.after(request)
        return reply

    async def able(self) -> Able:
        if self.gone:
            raise Unreachable("nobody listens")
        return Able(verbs=self.duty._machine.verbs, services=self.duty._services)

    async def close(self) -> None:
        pass


class Around:
    """What is around the executor, as far as a procedure asks."""

    def __init__(self, state: VirtualState) -> None:
        self.state = state
        self.events: list[str] = []
        self.replicas: frozenset[int] = frozenset()
        self.drivers: frozenset[int] = frozenset()
        self.active: tuple[Check, ...] = ()
        self.seen: list[AnyObservation] = []
        self.looks = 0

    @property
    def boot_id(self) -> str:
        return self.state.boot_id

    def gpus(self) -> tuple[str, ...]:
        return tuple(gpu.uuid.decode() for gpu in self.state.gpus)

    def sample(self, gpu: str) -> GpuSample | None:
        self.looks += 1
        slot = self.gpus().index(gpu)
        block = self.state.gpus[slot]
        error = "GPU_IS_LOST" if block.lost else None
        return GpuSample(
            at=self.state.clock.now(), node="n1", gpu=gpu, error=error,
            readings=None if error else readings_of(block), links={} if error else links_of(block),
        )  # fmt: skip

    async def diagnose(self, gpu: str) -> tuple[Check, ...]:
        return self.active

    def driver_pids(self) -> frozenset[int]:
        return self.drivers

    def replica_pids(self) -> frozenset[int]:
        return self.replicas

    async def let_go(self) -> None:
        self.events.append("let go")

    def take_up(self) -> None:
        self.events.append("take up")

    def go_down(self) -> None:
        self.events.append("go down")

    def stay_up(self) -> None:
        self.events.append("stay up")

    def take(self, observation: AnyObservation) -> None:
        self.seen.append(observation)

    def was_reset(self, gpus: tuple[str, ...]) -> None:
        self.events.append(f"was reset {len(gpus)}")


class Node:
    """A virtual node in ``folder``. A second one on the same folder is the agent started again."""

    def __init__(self, folder: Path, *, level: Level = Level.REPAIR, services: tuple[str, ...] = SERVICES) -> None:
        self.folder = folder
        path = folder / "virtual.state"
        self.state = VirtualState.open(path) if path.exists() else VirtualState.create(path, "n1")
        self.machine = VirtualMachine(path)
        self.pause = folder / "PAUSE"
        self.clock = SystemClock()
        self.helper = InProcess(Duty(self.machine, services, self.pause, Ledger(folder / "limits.json"), SystemClock()))
        self.around = Around(self.state)
        self.journal = Journal(folder / "repairs.json")
        self.told: list[Told] = []
        self.learnt: tuple[ActionKind, ...] | None = None
        self.executor = Executor(
            self._work, level=level, clock=self.clock, paused=self.pause.exists, report=self._report,
            learnt=self._learn, settle_s=0.0,
        )  # fmt: skip

    def _work(self, objection: Callable[[Entry], str | None]) -> Work:
        evidence = Evidence(self.folder / "evidence", self.helper, lambda: [b"3,1,5,-;NVRM: Xid\n"], lambda: b"{}")
        return Work(
            journal=self.journal, helper=self.helper, around=self.around, evidence=evidence, clock=self.clock,
            objection=objection,
        )  # fmt: skip

    def _report(self, order: Order, state: ActionState, why: str) -> None:
        self.told.append((order.id, state, why))

    def _learn(self, able: tuple[ActionKind, ...]) -> None:
        self.learnt = able

    def uuid(self, slot: int = 0) -> str:
        return self.around.gpus()[slot]

    def services(self) -> tuple[str, ...]:
        return tuple(unit for unit in SERVICES if self.machine.is_active(unit))

    def ended(self, order: str = "a-1") -> Told | None:
        found = [told for told in self.told if told[0] == order and told[1] is not ActionState.RUNNING]
        return found[-1] if found else None

    def close(self) -> None:
        self.machine.close()
        self.state.close()


def reset_of(node: Node, slot: int = 0, **changes: Any) -> Order:
    usual = {"id": "a-1", "of": ActionKind.RESET_GPU, "token": "1.7", "ttl_s": 120.0, "gpu": node.uuid(slot)}
    return Order(**(usual | changes))


def reboot_of(**changes: Any) -> Order:
    usual = {"id": "a-1", "of": ActionKind.REBOOT_NODE, "token": "1.7", "ttl_s": 1200.0}
    return Order(**(usual | changes))


def validate_of(node: Node, slot: int = 0, **changes: Any) -> Order:
    usual = {"id": "v-1", "of": ActionKind.VALIDATE, "token": "1.8", "ttl_s": 900.0, "gpu": node.uuid(slot)}
    return Order(**(usual | changes))


def kinds(asked: Sequence[AnyRequest]) -> list[str]:
    return [type(request).__name__ for request in asked]
