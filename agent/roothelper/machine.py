"""What a node is to the root helper: a real one (``real``) or a virtual one (``virtual``)."""

from typing import Protocol

from agent.roothelper.requests import AnyReply, Holder


class Machine(Protocol):
    """The means of one node. Nothing here decides whether something may be done; ``duty`` does."""

    @property
    def verbs(self) -> tuple[str, ...]:
        """What it has the means for."""
        ...

    def holders(self, gpus: tuple[str, ...]) -> tuple[Holder, ...]:
        """Every process that has one of these GPUs open. Raises InputError for a GPU that is not here."""
        ...

    def gpus(self) -> tuple[str, ...]:
        """All GPUs of the node."""
        ...

    def is_active(self, unit: str) -> bool:
        """Whether a service runs."""
        ...

    def stop(self, unit: str) -> AnyReply:
        """Stop a service."""
        ...

    def start(self, unit: str) -> AnyReply:
        """Start a service."""
        ...

    def users(self) -> tuple[str, ...] | None:
        """Who is logged in; None if that cannot be learnt."""
        ...

    def inhibitors(self) -> tuple[str, ...] | None:
        """What blocks a shutdown; None if that cannot be learnt."""
        ...

    def collect(self, order: str, limit_s: float) -> AnyReply:
        """Take a bug report."""
        ...

    def report(self, order: str, offset: int) -> AnyReply:
        """A piece of the bug report that was taken for an order."""
        ...

    def reset(self, gpus: tuple[str, ...]) -> AnyReply:
        """Reset GPUs."""
        ...

    def reboot(self) -> AnyReply:
        """Reboot the node."""
        ...
