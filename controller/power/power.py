"""What the hand needs of a node's power: look first, then act once, and finish what was cut short."""

from typing import Protocol

from controller.power.config import PowerConfig
from controller.power.ipmi import Ipmi
from controller.power.redfish import Redfish


class Power(Protocol):
    """One node's power."""

    async def plan(self) -> str:
        """How it would be cycled, in the BMC's own word; nothing is changed.

        Raises Unreachable (ask again later) or Refused (it cannot, or may not, do it).
        """

    async def cycle(self, means: str) -> None:
        """Cycle it as planned. Raises Refused (it said no: nothing was done) or Unreachable (nobody knows)."""

    async def complete(self) -> None:
        """Switch it on, should it be off: what a cycle that was cut short left behind. Raises as ``cycle`` does."""


def power_of(config: PowerConfig, node: str) -> Power:
    """The power of a node."""
    if config.means == "redfish":
        return Redfish(config, config.address_of(node))
    return Ipmi(config, config.address_of(node))
