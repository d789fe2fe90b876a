"""The hand on the power: at most once over every death of the controller, and judged by the node's boot."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from controller.core.fleet.stimuli import Arrived
from controller.core.fleet.views import View
from controller.deciding.conductor import Conductor, Submission
from controller.deciding.mind import real_core
from controller.outward.powering import Powering
from controller.power.config import PowerConfig
from tests.controller.house import NODE, House, event, house
from tests.controller.node import Node
from vocab.clock import SystemClock, VirtualClock
from vocab.errors import Refused, Unreachable
from vocab.lines import ActionLine, AnyLine, Subject
from vocab.states import ActionKind, ActionState

POLICY = 'rules."xid:79".recovery = "power_cycle"\n'
BMC = PowerConfig(means="ipmitool", address="bmc", user="u", password_file="/none", nodes=(NODE,))


class Switch:
    """A BMC's power; ``hang``: it answers no more once it is told."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.fails: Exception | None = None
        self.says: Exception | None = None
        self.planning: Callable[[], Any] | None = None
        self.acting: Callable[[], Any] | None = None

    async def plan(self) -> str:
        if self.planning is not None:
            await self.planning()
        if self.fails is not None:
            raise self.fails
        return "cycle"

    async def cycle(self, means: str) -> None:
        self.did.append(means)
        if self.acting is not None:
            await self.acting()
        if self.says is not None:
            raise self.says

    async def complete(self) -> None:
        self.did.append("complete")


@asynccontextmanager
async def hand(home: House, switch: Switch, folder: Path) -> AsyncIterator[None]:
    made = home.inside
    powering = Powering(made.conductor, SystemClock(), {NODE: switch}, pause_file=folder / "PAUSE", look_s=0.01)
    task = asyncio.create_task(powering.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def broken(folder: Path) -> AsyncIterator[tuple[House, Node]]:
    """A controller, and a node with a fault that only power ends, held and empty."""
    (folder / "policy.toml").write_text(POLICY)
    async with house(folder, make_core=real_core, policy_file=str(folder / "policy.toml"), power=(BMC,)) as home:
        home.inside.powering._powers = {}  # its own hand would run the real ipmitool
        node = Node(home)
        yield home, node


async def power_cycle(home: House) -> dict[str, Any]:
    found = [each for each in await home.get("actions") if each["of"] == "power_cycle"]
    return found[-1] if found else {"state": None}


async def until(home: House, node: Node, state: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (action := await power_cycle(home))["state"] != state:
            await node.send()
            await asyncio.sleep(0.02)
    return action


async def fault(node: Node) -> None:
    await node.send()
    await node.settle()
    await node.send(event(1, gpu=0))
    await node.settle()


async def test_the_store_has_that_it_begins_before_the_bmc_hears_of_it_and_a_new_boot_ends_it(tmp_path: Path) -> None:
    switch, seen = Switch(), []
    async with broken(tmp_path) as (home, node), hand(home, switch, tmp_path):

        async def note() -> None:
            seen.append((await power_cycle(home))["state"])

        switch.acting = note
        await fault(node)
        await until(home, node, "running")
        node.facts = replace(node.facts, boot_id="boot-2")
        action = await until(home, node, "done")
        assert action["why"] == "the node has a new boot id"
    assert (switch.did, seen) == (["cycle"], ["running"])


async def test_no_agent_is_told_to_cycle_its_own_power(tmp_path: Path) -> None:
    async with broken(tmp_path) as (home, node):
        await fault(node)
        await until(home, node, "ordered")
        assert (await node.obey()).orders == ()


async def test_killed_after_it_has_begun_it_does_not_send_it_again_but_completes_it(tmp_path: Path) -> None:
    first, second = Switch(), Switch()
    first.acting = asyncio.Event().wait
    async with broken(tmp_path) as (home, node), hand(home, first, tmp_path):
        await fault(node)
        await until(home, node, "running")
    async with broken(tmp_path) as (home, node), hand(home, second, tmp_path):
        await node.send()
        async with asyncio.timeout(60):
            while not second.did:
                await asyncio.sleep(0.02)
        assert (await power_cycle(home))["state"] == "running"
    assert (first.did, second.did) == (["cycle"], ["complete"])


async def test_killed_before_it_has_begun_it_sends_it_once_in_its_next_life(tmp_path: Path) -> None:
    first, second, looked = Switch(), Switch(), asyncio.Event()

    async def look_for_ever() -> None:
        looked.set()
        await asyncio.Event().wait()

    first.planning = look_for_ever
    async with broken(tmp_path) as (home, node), hand(home, first, tmp_path):
        await fault(node)
        async with asyncio.timeout(60):
            await looked.wait()
    async with broken(tmp_path) as (home, node), hand(home, second, tmp_path):
        await node.send()
        await until(home, node, "running")
    assert (first.did, second.did) == ([], ["cycle"])


async def test_a_bmc_that_may_not_leaves_it_to_a_person(tmp_path: Path) -> None:
    switch = Switch()
    switch.fails = Refused("bmc answered 401")
    async with broken(tmp_path) as (home, node), hand(home, switch, tmp_path):
        await fault(node)
        action = await until(home, node, "refused")
        assert action["why"] == "bmc answered 401"
        halted = (await home.get("fleet"))["halted"]
        assert "power_cycle was refused: bmc answered 401" in next(iter(halted.values()))
    assert switch.did == []


async def test_what_a_silent_bmc_did_is_left_open_and_not_repeated(tmp_path: Path) -> None:
    switch = Switch()
    switch.says = Unreachable("no answer")
    async with broken(tmp_path) as (home, node), hand(home, switch, tmp_path):
        await fault(node)
        await until(home, node, "running")
        await asyncio.sleep(0.1)  # ten looks
        assert (await power_cycle(home))["state"] == "running"
    assert switch.did == ["cycle"]


async def test_a_pause_file_on_the_controllers_machine_holds_the_hand(tmp_path: Path) -> None:
    switch = Switch()
    (tmp_path / "PAUSE").touch()
    async with broken(tmp_path) as (home, node), hand(home, switch, tmp_path):
        await fault(node)
        await until(home, node, "ordered")
        await asyncio.sleep(0.1)
        assert switch.did == []
        (tmp_path / "PAUSE").unlink()
        await until(home, node, "running")
    assert switch.did == ["cycle"]


async def test_a_pause_while_the_bmc_is_slow_holds_the_hand_until_it_is_over(tmp_path: Path) -> None:
    switch, asked, answers = Switch(), asyncio.Event(), asyncio.Event()

    async def be_slow() -> None:
        asked.set()
        await answers.wait()

    switch.planning = be_slow
    async with broken(tmp_path) as (home, node), hand(home, switch, tmp_path):
        await fault(node)
        async with asyncio.timeout(60):
            await asked.wait()
        await home.post("pause", {"reason": "stop it"})
        answers.set()
        await asyncio.sleep(0.2)  # twenty looks
        assert ((await power_cycle(home))["state"], switch.did) == ("ordered", [])


async def test_a_hand_that_stood_still_after_it_said_that_it_begins_does_not_act_for_another(tmp_path: Path) -> None:
    switch = Switch()
    async with broken(tmp_path) as (home, node):
        conductor = home.inside.conductor
        seen = Deposing(conductor)
        powering = Powering(seen, SystemClock(), {NODE: switch}, pause_file=tmp_path / "PAUSE", look_s=0.01)
        task = asyncio.create_task(powering.run())
        await fault(node)
        await until(home, node, "running")
        await asyncio.sleep(0.1)  # ten looks
        task.cancel()
    assert switch.did == []


class Deposing(Conductor):
    """One that another has taken over from as soon as it has stored that the power is cycled."""

    def __init__(self, inside: Conductor) -> None:
        self._inside = inside
        self._is_over = False

    @property
    def decides(self) -> bool:
        return not self._is_over

    def look(self) -> View | None:
        return self._inside.look()

    async def submit(self, submission: Submission) -> list[AnyLine]:
        lines = await self._inside.submit(submission)
        self._is_over = True
        return lines


class Ordering:
    """A controller that has ordered a power cycle of each of these nodes, and takes down what becomes of it."""

    decides = True

    def __init__(self, *nodes: str) -> None:
        self.orders = [cycle_of(node) for node in nodes]

    def look(self) -> Any:
        return SimpleNamespace(actions=tuple(self.orders))

    async def submit(self, submission: Submission) -> list[AnyLine]:
        (stimulus,) = submission.stimuli
        item = cast("Arrived", stimulus).item
        lines: list[AnyLine] = [
            replace(order, state=item.state)  # type: ignore[union-attr]
            for order in self.orders
            if order.subject.node == item.node  # type: ignore[union-attr]
        ]
        return lines


def cycle_of(node: str) -> ActionLine:
    return ActionLine(
        at=1.0, subject=Subject(node=node), id=f"a-{node}", of=ActionKind.POWER_CYCLE, state=ActionState.ORDERED,
        token="1.1", rule="catalogue/xid:79", policy="test", why="a fault",
    )  # fmt: skip


async def test_a_bmc_that_hangs_delays_no_other_and_its_own_node_is_not_told_twice(tmp_path: Path) -> None:
    asked: list[str] = []

    class Hangs(Switch):
        async def plan(self) -> str:
            asked.append("n1")
            await asyncio.Event().wait()
            return "cycle"

    clock, second = VirtualClock(0.0), Switch()
    conductor = cast("Conductor", Ordering("n1", "n2"))
    powering = Powering(conductor, clock, {"n1": Hangs(), "n2": second}, pause_file=tmp_path / "PAUSE", look_s=0.001)
    task = asyncio.create_task(powering.run())
    async with asyncio.timeout(60):
        while not second.did:
            await asyncio.sleep(0.001)
    for _ in range(10):  # it looks again and again, also after a long time
        clock.advance(60.0)
        await asyncio.sleep(0.002)
    task.cancel()
    await asyncio.wait([task])
    assert (asked, second.did[:1]) == (["n1"], ["cycle"])
