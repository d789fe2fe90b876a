"""The controller as an observer: whether it can itself reach the agents of nodes that have gone silent.

One observer alone never makes a node lost; the Core weighs what all of them say.
"""

import asyncio
import contextlib
import ssl

import aiohttp

from controller.core.fleet.stimuli import Reached
from controller.deciding.conductor import Conductor, Submission
from vocab.errors import CorralError, Unreachable
from wire.client import Client

LOOK_S = 5.0
ANSWER_S = 3.0


class Liveness:
    """A loop that looks after silent nodes."""

    def __init__(self, conductor: Conductor, tls: ssl.SSLContext) -> None:
        self._conductor = conductor
        self._tls = tls

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            silent = self._conductor.silent()
            await asyncio.gather(*(self._look_at(node, address) for node, address in silent.items()))

    async def _look_at(self, node: str, address: str) -> None:
        seen = Reached(of=node, by=self._conductor.name, ok=await _answers(address, self._tls))
        with contextlib.suppress(Unreachable):  # the store is down: the next look will tell
            await self._conductor.submit(Submission(stimuli=(seen,)))


async def _answers(address: str, tls: ssl.SSLContext) -> bool:
    """Whether anything of the agent answers: a refusal is an answer too."""
    try:
        async with Client(address, tls=tls) as client:
            await client.call("GET", "/healthz", object, timeout_s=ANSWER_S)
    except Unreachable as error:
        return isinstance(error.__cause__, aiohttp.ClientSSLError)  # a certificate that we do not trust was shown
    except CorralError:
        return True
    return True
