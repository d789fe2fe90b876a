"""The border to a manager of others' work. One implementation each; the keeper knows no other way to them."""

from collections.abc import Sequence
from typing import Protocol

from controller.core.fleet.stimuli import Managed
from controller.core.fleet.views import OwnerOrder


class Adapter(Protocol):
    """One manager. Both methods raise Unreachable (it does not answer now) and Refused (it never will like this)."""

    @property
    def name(self) -> str:
        """As in ``managed_by``, and in ``OwnerOrder.by``."""
        ...

    async def look(self) -> Sequence[Managed]:
        """What it says of all of its nodes; nothing if it manages none."""
        ...

    async def act(self, order: OwnerOrder) -> None:
        """Have an order carried out, unless that is done already. What came of it is seen by looking."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
