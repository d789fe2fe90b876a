"""What each node should run, hold and do, numbered by a generation that rises when the content changes.

Agents ask with the generation they have and are answered once ours is another. The numbers are stored with
the decisions that raised them, so a restart tells nobody anything new. Equal content is *unchanged*.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from vocab.messages import Desired

POLL_S = 25.0  # proxies and load balancers cut at 30 s


class Dispatch:
    """The desired state of every node, and the agents that wait for it."""

    def __init__(self) -> None:
        self._desired: dict[str, Desired] = {}
        self._moved: dict[str, set[asyncio.Event]] = {}  # by node: who waits, and nobody else
        self._floors: dict[str, int] = {}  # generations that nodes got from a database that we have lost

    def load(self, stored: Sequence[Desired]) -> None:
        """Begin with what is on disk."""
        self._desired = {desired.node: desired for desired in stored}
        self.wake_all()  # who waits may have waited for one of these

    def raise_to(self, node: str, generation: int) -> None:
        """Number the node's next desired state above ``generation``."""
        self._floors[node] = max(generation, self._floors.get(node, 0))

    @property
    def waiting(self) -> int:
        """How many nodes wait for news."""
        return len(self._moved)

    def generation(self, node: str) -> int:
        """The generation that a node should have; 0 while there is none."""
        desired = self._desired.get(node)
        return desired.generation if desired else 0

    def desired(self, node: str) -> Desired | None:
        """What a node was last told."""
        return self._desired.get(node)

    def changed(self, nodes: Iterable[str], want: Callable[[str], Desired | None], epoch: int) -> list[Desired]:
        """What the nodes must be told anew, numbered; to be stored and then given to ``publish``.

        A node for which ``want`` gives None keeps what it was told last.
        """
        fresh = []
        for node in nodes:
            wanted = want(node)
            had = self._desired.get(node)
            number = had.generation if had else 0
            floor = self._floors.get(node, 0)
            if wanted is None:
                continue
            if floor >= number or had != msgspec.structs.replace(wanted, epoch=epoch, generation=number):
                fresh.append(msgspec.structs.replace(wanted, epoch=epoch, generation=max(number, floor) + 1))
        return fresh

    def publish(self, fresh: Iterable[Desired]) -> None:
        """These are on disk: answer the agents that wait for them."""
        for desired in fresh:
            self._desired[desired.node] = desired
            _wake(self._moved.get(desired.node, ()))

    def wake_all(self) -> None:
        """Answer everybody with what there is, so that the server can stop."""
        for waiting in self._moved.values():
            _wake(waiting)

    async def poll(self, node: str, generation: int, wait_s: float = POLL_S) -> Desired | None:
        """The node's desired state once it is newer than ``generation``, or after ``wait_s`` as it is.

        A node that is ahead of us (our database was restored) waits as well, for the number above its own.
        """
        if self.generation(node) <= generation:
            moved = asyncio.Event()
            waiting = self._moved.setdefault(node, set())
            waiting.add(moved)
            try:
                async with asyncio.timeout(wait_s):
                    await moved.wait()
            except TimeoutError:
                pass
            finally:  # of a node that nobody has ever heard of, nothing stays either
                waiting.discard(moved)
                if not waiting:
                    del self._moved[node]
        return self._desired.get(node)


def _wake(waiting: Iterable[asyncio.Event]) -> None:
    for moved in waiting:
        moved.set()
