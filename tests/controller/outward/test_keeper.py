"""The keepers: what they carry out still stands when they come to it."""

from collections.abc import Sequence
from types import SimpleNamespace

from controller.core.fleet.stimuli import Managed, Managing
from controller.core.fleet.views import OwnerOrder
from controller.deciding.conductor import Conductor, Submission
from controller.outward.keeper import Keeper
from vocab.clock import VirtualClock
from vocab.lines import ActionLine, AnyLine, Subject
from vocab.states import ActionKind, ActionState


def order(node: str) -> OwnerOrder:
    action = ActionLine(
        at=1.0, subject=Subject(node=node), id=f"drain {node}", of=ActionKind.DRAIN, token=f"1.{node}",
        state=ActionState.ORDERED, rule="manager/slurm", policy="1", why="held",
    )  # fmt: skip
    return OwnerOrder(by="slurm", action=action, node=node)


class Deciding(Conductor):
    """One that decides, with these orders."""

    def __init__(self, *nodes: str) -> None:
        self.stand = tuple(order(node) for node in nodes)
        self.mind = SimpleNamespace(core=None)  # type: ignore[assignment]

    @property
    def ready(self) -> tuple[bool, str]:
        return True, "ok"

    @property
    def decides(self) -> bool:
        return True

    def orders(self) -> tuple[OwnerOrder, ...]:
        return self.stand

    async def submit(self, submission: Submission) -> list[AnyLine]:
        return []


class Slow:
    """A manager; while it does the first thing, a person pauses everything."""

    name = "slurm"

    def __init__(self, conductor: Deciding) -> None:
        self.did: list[str] = []
        self._conductor = conductor

    async def look(self) -> Sequence[Managed]:
        return ()

    async def act(self, order: OwnerOrder) -> None:
        self.did.append(order.node)
        self._conductor.stand = ()

    async def close(self) -> None:
        pass


async def test_a_pause_while_one_order_is_carried_out_holds_back_the_others() -> None:
    conductor = Deciding("n1", "n2", "n3")
    slow = Slow(conductor)
    managing = Managing(by="slurm", nodes=True)
    await Keeper(slow, managing, conductor, VirtualClock(0.0), lambda *_: None, 60.0).turn()
    assert slow.did == ["n1"]
