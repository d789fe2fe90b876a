"""A node whose replicas are units that its site wrote: systemd and the root helper in memory, and crashes at will."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from agent.executor.site_units import SiteUnits
from agent.executor.unit_book import UnitBook
from agent.roothelper.client import PATIENCE_S
from agent.roothelper.duty import Duty
from agent.roothelper.limits import Ledger
from agent.roothelper.requests import Able, AnyReply, AnyRequest, Done, Failed, UnitRun
from agent.roothelper.site import SiteDuty
from tests.agent.roothelper.machine import FakeMachine
from vocab.clock import VirtualClock
from vocab.errors import Unreachable
from vocab.messages import Order, ReplicaStatus
from vocab.observations import Owner
from vocab.states import ActionKind, ActionState, Level

UNIT, REPLICA = "vllm@0.service", "vllm@0.service:8000@n1"


class Systemd:
    """Units with their runs. ``slow``: a stop takes until the test lets it end."""

    def __init__(self) -> None:
        self.runs = {UNIT: UnitRun(active="active", invocation="run1", file_state="enabled", result="success")}
        self.told: list[str] = []
        self.slow = False
        self.breaks: str | None = None
        self.begun = 1

    def read(self, unit: str) -> UnitRun | None:
        return self.runs.get(unit)

    def tell(self, verb: str, unit: str) -> AnyReply:
        if self.breaks is not None:
            return Failed(why=self.breaks)
        self.told.append(verb)
        self.stopping(unit) if verb == "stop" and self.slow else self.does(verb, unit)
        return Done()

    def stopping(self, unit: str) -> None:
        self.runs[unit] = msgspec.structs.replace(self.runs[unit], active="deactivating")

    def does(self, verb: str, unit: str = UNIT, **changes: str) -> None:
        """Whoever tells it."""
        if verb == "stop":
            self.runs[unit] = msgspec.structs.replace(self.runs[unit], **({"active": "inactive"} | changes))
        else:
            self.begun += 1
            run = {"active": "active", "invocation": f"run{self.begun}"} | changes
            self.runs[unit] = msgspec.structs.replace(self.runs[unit], **run)


class Helper:
    """``dies_at``: the agent is killed before this many requests were answered; ``after`` it: once they were done."""

    def __init__(self, duty: Duty) -> None:
        self.duty = duty
        self.asked = 0
        self.dies_at: int | None = None
        self.after = False
        self.gone = False

    async def ask(self, request: AnyRequest) -> AnyReply:
        assert type(request) in PATIENCE_S
        if self.gone:
            raise Unreachable("nobody listens")
        self.asked += 1
        dies = self.asked == self.dies_at
        if dies and not self.after:
            raise asyncio.CancelledError
        reply = self.duty.perform(request)
        if dies:
            raise asyncio.CancelledError
        return reply

    async def able(self) -> Able:
        return Able(verbs=(), services=(), units=self.duty._site.allowed)

    async def close(self) -> None:
        pass


class Doors:
    def __init__(self) -> None:
        self.said: list[str] = []

    async def close(self, url: str) -> bool:
        self.said.append(f"close {url}")
        return True

    async def reopen(self, url: str) -> None:
        self.said.append(f"reopen {url}")


class Site:
    """One node in ``folder``; ``again`` is its agent started anew on the same disk."""

    def __init__(self, folder: Path, *, level: Level = Level.REPAIR) -> None:
        self.folder = folder
        self.systemd = Systemd()
        self.clock = VirtualClock(1_000_000.0)
        self.pause = folder / "PAUSE"
        self.doors = Doors()
        self.told: list[tuple[str, ActionState, str]] = []
        self.units: tuple[str, ...] = ()
        self.looked = True
        self.boot = "boot-1"
        self.level = level
        self.statuses = (serving(),)
        self.again()

    def again(self) -> None:
        ledger = Ledger(self.folder / "limits.json")
        duty = SiteDuty(self.systemd, ("vllm@.service",), ledger, self.clock)
        self.helper = Helper(Duty(FakeMachine(), (), self.pause, ledger, self.clock, site=duty))
        self.book = UnitBook(self.folder / "units.json")
        self.agent = SiteUnits(
            self.book, self.helper, seen=lambda: self.statuses, has_looked=lambda: self.looked, boot_id=self.boot,
            level=self.level, clock=self.clock, paused=self.pause.exists, report=self._report, learnt=self._learn,
            door=self.doors, look_s=0.001,
        )  # fmt: skip

    def _report(self, order: Order, state: ActionState, why: str) -> None:
        self.told.append((order.id, state, why))

    def _learn(self, units: tuple[str, ...]) -> None:
        self.units = units

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.agent.run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def outcome(self, order: str) -> tuple[ActionState, str] | None:
        """What was said of it at last."""
        said = [(state, why) for name, state, why in self.told if name == order]
        return said[-1] if said and (said[-1][0] is not ActionState.RUNNING or said[-1][1]) else None

    def sees(self, *statuses: ReplicaStatus) -> None:
        self.statuses = statuses


def serving(**changes: Any) -> ReplicaStatus:
    usual = {
        "replica": REPLICA, "deployment": "llama", "phase": "ready", "ready": True, "observed": True, "pid": 100,
        "engine": "vllm", "owner": Owner(kind="systemd-unit", name=UNIT, uid=1000), "url": "http://127.0.0.1:8000",
    }  # fmt: skip
    return ReplicaStatus(**(usual | changes))


def order(of: ActionKind, number: int, **changes: Any) -> Order:
    usual: dict[str, Any] = {"id": f"a-{number}", "of": of, "token": f"1.{number}", "replica": REPLICA}
    usual["ttl_s"] = 0.0 if of is ActionKind.RELEASE else 3600.0
    return Order(**(usual | changes))


def drain(number: int = 1, **changes: Any) -> Order:
    return order(ActionKind.DRAIN, number, **changes)


def restart(number: int = 1, **changes: Any) -> Order:
    return order(ActionKind.RESTART_REPLICA, number, **changes)


def release(number: int = 2, **changes: Any) -> Order:
    return order(ActionKind.RELEASE, number, **changes)
