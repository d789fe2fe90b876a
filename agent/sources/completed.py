"""A source whose observations others complete before anybody sees them."""

from collections.abc import Callable, Sequence

from agent.sources.source import Emit, Source
from vocab.observations import AnyObservation

Complete = Callable[[AnyObservation], AnyObservation]


class Completed:
    """Runs ``source``; each observation goes through all ``steps`` in their order."""

    def __init__(self, source: Source, steps: Sequence[Complete]) -> None:
        self._source = source
        self._steps = tuple(steps)

    @property
    def name(self) -> str:
        """Of the source within."""
        return self._source.name

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""

        def through(observation: AnyObservation) -> None:
            for step in self._steps:
                observation = step(observation)
            emit(observation)

        await self._source.run(through)
