"""Looks after a test while it runs: its leave, neighbours that serve, and the heat of the GPU. Ends the child."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from agent.diag.child import Child
from agent.diag.heat import Stop, stop
from agent.diag.pace import Paces, Tokens
from vocab.observations import GpuSample

WINDOW_S = 5.0  # of tokens, so that a mean is one
LOOK_S = 1.0  # how often leave and temperature are looked at; a real GPU's is read as often

Count = Callable[[], Awaitable[Mapping[str, Tokens]]]


class Watch:
    """``count`` asks the neighbours; ``sample`` gives the GPU's last reading; ``lapsed`` says why leave ended."""

    def __init__(
        self,
        count: Count,
        sample: Callable[[], GpuSample | None],
        lapsed: Callable[[], str | None],
        *,
        window_s: float = WINDOW_S,
        look_s: float = LOOK_S,
    ) -> None:
        self._count = count
        self._sample = sample
        self._lapsed = lapsed
        self._window_s = window_s
        self._look_s = look_s
        self._paces = Paces()
        self._beside = False
        self.stopped: Stop | None = None

    async def before(self) -> None:
        """Learn the neighbours' usual pace; takes a window where any of them tells."""
        first = await self._count()
        self._beside = bool(first)
        if self._beside:
            self._paces.base(first)
            await asyncio.sleep(self._window_s)
            self._paces.base(await self._count())

    async def leave(self, child: Child) -> None:
        """End the child if what runs has no leave any more; runs until cancelled."""
        while True:
            why = self._lapsed()
            if why is not None:
                child.end(why)
                return
            await asyncio.sleep(self._look_s)

    async def neighbours(self, child: Child) -> None:
        """End the child if it slows one down; runs until cancelled."""
        while self._beside:
            await asyncio.sleep(self._window_s)
            why = self._paces.look(await self._count())
            if why is not None:
                child.end(why)
                return

    async def heat(self, child: Child) -> None:
        """End the child if the GPU gets too hot; runs until cancelled."""
        while True:
            self.stopped = stop(self._sample())
            if self.stopped is not None:
                child.end(self.stopped.why)
                return
            await asyncio.sleep(self._look_s)
