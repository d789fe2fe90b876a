"""The one shape of all sources."""

from collections.abc import Callable
from typing import Protocol

from vocab.observations import AnyObservation

Emit = Callable[[AnyObservation], None]


class Source(Protocol):
    """Emits observations until cancelled; stamps them with its clock and its node's name.

    A source reports its own state (up, down, degraded) as SourceState and does not raise for what it
    reads: an unreadable driver is a report, not an exception.
    """

    @property
    def name(self) -> str:
        """For logs and metrics."""
        ...

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        ...
