"""What sources have said while the doctor listened."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from agent.sources.source import Source
from agent.whole import joined
from corral.doctor.facts import Unit
from vocab.observations import AnyObservation, GpuSample, HostSample, NodeSeen, ServiceSeen, SourceState

ENOUGH_SAMPLES = 3  # of each GPU: activity is a mean between two


class Seen:
    """The last of everything."""

    def __init__(self) -> None:
        self.states: dict[str, SourceState] = {}
        self.inventory: NodeSeen | None = None
        self.samples: dict[str, GpuSample] = {}
        self.counts: dict[str, int] = {}
        self.host: dict[str, object] = {}
        self.ports: dict[str, str | None] = {}
        self.units: dict[str, Unit] = {}
        self._news = asyncio.Event()

    async def watch(self, sources: Sequence[Source], is_enough: Callable[[], bool], within_s: float) -> None:
        """Run the sources until they have said enough, or the time is over."""
        tasks = [asyncio.ensure_future(source.run(self.take)) for source in sources]
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not is_enough():
                    self._news.clear()
                    await self._news.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def take(self, observation: AnyObservation) -> None:
        """One observation."""
        match observation:
            case SourceState(source=source):
                self.states[source] = observation
            case NodeSeen():
                self.inventory = observation
            case GpuSample(gpu=str(gpu)):
                self.samples[gpu] = joined(self.samples.get(gpu), observation)
                self.counts[gpu] = self.counts.get(gpu, 0) + 1
            case HostSample():
                self.host.update(observation.readings)
                states = {name: figures.get("state") for name, figures in observation.devices.items()}
                self.ports.update({name: None if state is None else str(state) for name, state in states.items()})
            case ServiceSeen():
                self.units[observation.unit] = Unit(observation.active is True, observation.restarts)
        self._news.set()

    def error(self, source: str) -> str | None:
        """Why a source does not work."""
        state = self.states.get(source)
        return None if state is None or state.state == "up" else state.error or state.state

    def is_enough(self) -> bool:
        """Whether waiting would tell more of a node."""
        if (
            not {"nvml", "host", "service"} <= self.states.keys()
            or not {"uptime_s", "nvidia_d_state"} <= self.host.keys()
        ):
            return False
        gpus = self.inventory.gpus if self.inventory else ()
        read = bool(gpus) and all(self.counts.get(gpu.uuid, 0) >= ENOUGH_SAMPLES for gpu in gpus)
        return read or self.error("nvml") is not None
