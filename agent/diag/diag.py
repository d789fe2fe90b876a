"""One run of active checks: the readings, the measuring program on one GPU after the other, all GPUs together, DCGM.

One run a node at a time. What is found goes to who asked, and to the judge as ``check`` observations; not so what was
only read, for the judge has seen these readings already.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import msgspec

from agent.checks.baseline import ORDER
from agent.diag.bench import Bench
from agent.diag.child import Child
from agent.diag.leave import Standing, hindrance, lapsed, objection
from agent.diag.opening import CHECK as OPEN
from agent.diag.pace import Tokens
from agent.diag.plan import ALLREDUCE, BURN, DCGM_LEVELS, DEADLINE_S, is_harmless, tests_of
from agent.diag.readings import checks
from agent.diag.ruling import name_of, rule
from agent.diag.verdict import Subject
from agent.diag.watch import LOOK_S, Watch
from agent.sources.dcgm.diag import CHECK, diagnose
from agent.sources.dcgm.sight import DcgmSettings
from vocab.clock import Clock
from vocab.diag import AnyFigures, AnyTold, Begun, Checked, DiagRequest, Ended, Grade, Started, Unmeasured
from vocab.errors import InputError, Refused
from vocab.observations import Check, GpuIdentity, GpuSample

REST_S = 5.0  # for the program to be gone after SIGKILL; one that the kernel keeps is named by who looks for it

Tell = Callable[[AnyTold], Awaitable[None]]


class Ground(Protocol):
    """The node that the checks run on."""

    @property
    def node(self) -> str:
        """Its name."""
        ...

    def gpus(self) -> tuple[GpuIdentity, ...]:
        """Of the inventory."""
        ...

    def sample(self, gpu: str) -> GpuSample | None:
        """The last reading of a GPU, if it is young enough."""
        ...

    def standing(self) -> Standing:
        """Who keeps and uses the GPUs."""
        ...

    def bench(self, gpu: str) -> Bench:
        """On what its tests run."""
        ...

    async def tokens(self) -> Mapping[str, Tokens]:
        """What the replicas of the node have counted."""
        ...

    def take(self, observation: Check) -> None:
        """Judge it."""
        ...


class Diag:
    """The active checks of one node; ``program`` is the command that measures."""

    def __init__(
        self, ground: Ground, program: Sequence[str], clock: Clock, deadlines: Mapping[str, float] = DEADLINE_S
    ) -> None:
        self._ground = ground
        self._program = tuple(program)
        self._clock = clock
        self._deadlines = deadlines
        self._turn = asyncio.Lock()
        self._child: Child | None = None
        self._stopped: str | None = None  # why the run at hand does no more
        self._resting: str | None = None  # why none is begun
        self._awake = asyncio.Event()
        self._awake.set()

    def pids(self) -> frozenset[int]:
        """The process that may have the driver open now."""
        pid = self._child.pid if self._child is not None else None
        return frozenset() if pid is None else frozenset({pid})

    def stop(self, why: str) -> None:
        """End the run at hand: all tests that it has not done are unknown for this reason."""
        self._stopped = why
        if self._child is not None:
            self._child.end(why)

    async def rest(self, why: str) -> None:
        """End the run at hand and begin none until ``wake``; returns once the program is gone or cannot be killed."""
        self._resting = why
        self._awake.clear()
        self.stop(why)
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_S), self._turn:
                pass

    def wake(self) -> None:
        """Runs may begin again."""
        self._resting = None
        self._awake.set()

    async def run(self, request: DiagRequest, tell: Tell) -> None:
        """Run it for a person. Raises InputError or Refused before anything is told."""
        gpus = self._chosen(request.gpus)
        why = objection(request.grade, gpus, self._ground.standing())
        if why is not None:
            raise Refused(why)
        if self._resting is not None:
            raise Refused(f"{self._resting}: again when it is over")
        if self._turn.locked():
            raise Refused("active checks run on this node already: wait for their end")

        async def judged(told: AnyTold) -> None:
            if isinstance(told, Checked):
                self._ground.take(told.check)
            await tell(told)

        async with self._turn:
            self._stopped = None
            for gpu in gpus:
                sample, board = self._ground.sample(gpu), self._board(gpu)
                for check in checks(sample, gpu, self._ground.node, self._clock.now(), board):
                    await tell(Checked(check=check))
                await self._program_on(gpu, request.grade, judged)
            if request.grade is not Grade.QUICK and len(gpus) > 1:
                await self._measure(gpus, request.grade, (ALLREDUCE,), judged)
            await self._dcgm(gpus, request.grade, judged)
        await tell(Ended())

    async def validate(self, gpu: str) -> tuple[Check, ...]:
        """The checks of a validation, not yet judged: quick, and medium where the GPU is held and empty.

        One that a repair elsewhere on the node has ended is done again after it: it has said nothing of this GPU.
        """
        found: list[Check] = []

        async def keep(told: AnyTold) -> None:
            if isinstance(told, Checked):
                found.append(told.check)

        while True:
            await self._awake.wait()
            found.clear()
            await self._validate(gpu, keep)
            if self._resting is None and self._stopped is None:
                return tuple(sorted(found, key=lambda check: ORDER.index(check.result)))

    async def _validate(self, gpu: str, keep: Tell) -> None:
        async with self._turn:
            if self._resting is not None:
                return
            self._stopped = None
            grade = Grade.MEDIUM if objection(Grade.MEDIUM, (gpu,), self._ground.standing()) is None else Grade.QUICK
            await self._program_on(gpu, grade, keep)

    def _chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        known = tuple(gpu.uuid for gpu in self._ground.gpus())
        strange = [name for name in names if name not in known]
        if strange:
            raise InputError(f"gpus: {', '.join(strange)} is no GPU of {self._ground.node}; see `corral status`")
        if not known:
            raise Refused(f"the GPUs of {self._ground.node} are not known yet; see `corral doctor`")
        return tuple(dict.fromkeys(names)) or known

    # -- the program ------------------------------------------------------------------------------------

    async def _program_on(self, gpu: str, grade: Grade, tell: Tell) -> None:
        await self._measure((gpu,), grade, tests_of(grade), tell)

    async def _measure(self, gpus: Sequence[str], grade: Grade, tests: Sequence[str], tell: Tell) -> None:
        """One process for these tests on these GPUs; it is watched from the first test that may do harm."""
        gpu = gpus[0]
        bench = self._ground.bench(gpu)

        def ended() -> str | None:
            return lapsed(grade, gpus, self._ground.standing())

        why = self._stopped or self._hindrance(gpus, bench) or ended()
        if why is not None:
            for test in tests:
                check = self._ruled(Unmeasured(test=test, why=why), gpu, None)
                if check is not None:
                    await tell(Checked(check=check))
            return
        self._child = child = Child(self._program, gpus, bench, tests, self._deadlines)
        watch = Watch(self._ground.tokens, lambda: self._ground.sample(gpu), ended)
        if not all(map(is_harmless, tests)):
            await watch.before()
        closed = False  # it was said already that the GPU does not open
        async with _watching(watch, child) as begin:

            async def take(figures: AnyFigures) -> None:
                if isinstance(figures, Begun):
                    begin(figures.test)
                    await tell(Started(gpu=gpu, test=figures.test))
                    return
                check = self._ruled(figures, gpu, watch)
                nonlocal closed
                if check is not None and isinstance(figures, Unmeasured) and check.check == OPEN:
                    closed, was = True, closed
                    check = _once(check, figures) if was else check
                if check is not None:
                    await tell(Checked(check=check))

            try:
                await child.run(take)
            finally:
                self._child = child if child.pid is not None else None

    def _hindrance(self, gpus: Sequence[str], bench: Bench) -> str | None:
        left = self._child.pid if self._child is not None else None
        if left is not None:
            return f"process {left} of the last run cannot be killed: it is inside the kernel"
        found = (hindrance(self._ground.sample(gpu), bench.device) for gpu in gpus)
        return next((why for why in found if why is not None), None)

    def _ruled(self, figures: AnyFigures, gpu: str, watch: Watch | None) -> Check | None:
        sample = self._ground.sample(gpu)
        subject = Subject(gpu, self._board(gpu), sample.readings if sample is not None else None)
        check = rule(figures, subject, self._ground.node, self._clock.now())
        stopped = watch.stopped if watch is not None else None
        if check is None or stopped is None or stopped.code is None or not isinstance(figures, Unmeasured):
            return check
        return msgspec.structs.replace(check, result="problem", code=stopped.code, text=stopped.why)

    def _board(self, gpu: str) -> str | None:
        return next((each.name for each in self._ground.gpus() if each.uuid == gpu), None)

    # -- DCGM -------------------------------------------------------------------------------------------

    async def _dcgm(self, gpus: Sequence[str], grade: Grade, tell: Tell) -> None:
        settings = self._ground.bench(gpus[0]).dcgm
        if settings is None:
            return
        await tell(Started(gpu=gpus[0], test="dcgm"))
        for check in await self._diagnosed(settings, gpus, grade):
            await tell(Checked(check=msgspec.structs.replace(check, node=self._ground.node)))

    async def _diagnosed(self, settings: DcgmSettings, gpus: Sequence[str], grade: Grade) -> tuple[Check, ...]:
        """What DCGM finds; it is stopped with the run, and as soon as the grade has no leave any more."""
        run = asyncio.ensure_future(diagnose(settings, DCGM_LEVELS[grade], gpus))
        try:
            while not run.done():
                why = self._stopped or lapsed(grade, gpus, self._ground.standing())
                if why is not None:
                    return (Check(at=self._clock.now(), check=CHECK, result="unknown", text=why),)
                await asyncio.wait({run}, timeout=LOOK_S)
            return run.result()
        finally:
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run


def _once(check: Check, figures: Unmeasured) -> Check:
    """A test that met what stopped the one before it: one fault is told once."""
    return msgspec.structs.replace(check, check=name_of(figures.test), result="unknown", code=None)


@asynccontextmanager
async def _watching(watch: Watch, child: Child) -> AsyncIterator[Callable[[str], None]]:
    """Gives what is to be called as each test begins; all watching ends with the block."""
    tasks: dict[str, asyncio.Task[None]] = {}

    def begin(test: str) -> None:
        if not is_harmless(test) and "leave" not in tasks:
            tasks["leave"] = asyncio.create_task(watch.leave(child))
            tasks["neighbours"] = asyncio.create_task(watch.neighbours(child))
        if test == BURN and "heat" not in tasks:
            tasks["heat"] = asyncio.create_task(watch.heat(child))

    try:
        yield begin
    finally:
        for task in tasks.values():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
