"""The adapter of those who manage replicas by a program of their own.

It gets one JSON object on stdin: ``do`` (drain), ``action`` and ``token`` (the same for the same order, which may come
more than once), ``replica``, ``deployment``, ``node``, ``gpus``, ``incident``, ``why``. By its exit code it says
0: it will end; 75 (EX_TEMPFAIL of sysexits.h): ask again later; anything else: no, and its last words say why.
"""

from collections.abc import Sequence

import msgspec

from controller.adapters.config import HookConfig
from controller.adapters.program import run
from controller.core.fleet.stimuli import Managed
from controller.core.fleet.views import OwnerOrder
from vocab.errors import Refused, Unreachable

LATER = 75


class Hook:
    """A program that ends replicas."""

    name = "hook"

    def __init__(self, config: HookConfig) -> None:
        self._config = config

    async def look(self) -> Sequence[Managed]:
        """It manages no nodes; whether its replicas have ended is seen by their agents."""
        return ()

    async def act(self, order: OwnerOrder) -> None:
        """Ask for the end of a replica. Raises Unreachable or Refused."""
        given = msgspec.json.encode(
            {
                "do": order.action.of,
                "action": order.action.id,
                "token": order.action.token,
                "replica": order.replica,
                "deployment": order.deployment,
                "node": order.node,
                "gpus": order.gpus,
                "incident": order.action.incident,
                "why": order.action.why,
            }
        )
        told = await run(self._config.command, answer_s=self._config.answer_s, given=given)
        if told.code == LATER:
            raise Unreachable(f"{self._config.command[0]} says: later. {told.told}")
        if told.code != 0:
            raise Refused(f"{self._config.command[0]} says no (exit {told.code}): {told.told}")

    async def close(self) -> None:
        """It keeps nothing open."""
