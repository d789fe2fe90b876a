"""The controller that decides is killed, or stopped and woken, while nodes report and people order: real processes.

Each node goes on with the next controller when one does not answer, as agents do behind an address of several. In the
end every acknowledged event is stored once, every order was carried out once, and the line of changes has no gap.
"""

import asyncio
import contextlib
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.controller.house import Keys, batch, event, facts
from tests.controller.pooler import pooler, through
from tests.controller.postgres import Server
from tests.controller.process import running, toml, write_config
from tests.ports import free_ports
from vocab.errors import CorralError
from vocab.events import Event, Recovery, Severity
from vocab.messages import NodeFacts
from wire.client import Client

pytestmark = pytest.mark.e2e

NODES = ("n1", "n2", "n3")
CALM = 12  # events of each node before and after what is done to the leader


def _facts(node: str) -> NodeFacts:
    made = facts(node)
    return replace(made, gpus=tuple(replace(gpu, uuid=f"GPU-{node}-{gpu.index}") for gpu in made.gpus))


def _event(node: str, number: int) -> Event:
    made = event(number, node=node, code="xid:13", severity=Severity.WARNING)
    return replace(made, id=f"{node}-{number}", gpu=f"GPU-{node}-0", recovery=Recovery.NONE)


class Fleet:
    """Two controllers, nodes that report to them, and a person who orders."""

    def __init__(self, ports: tuple[int, ...], processes: list[subprocess.Popen[str]]) -> None:
        self.bases = [f"http://127.0.0.1:{port}" for port in ports]
        self.processes = processes
        self.acknowledged = dict.fromkeys(NODES, 0)
        self.ordered: list[str] = []
        self.decided_at = 0.0

    async def ask(self, place: int, method: str, path: str, body: Any = None, **query: Any) -> Any:
        async with Client(self.bases[place]) as client:
            return await client.call(method, path, Any, body, timeout_s=3.0, **query)

    async def leader(self) -> int:
        """The place of the controller that decides; waits for one."""
        async with asyncio.timeout(60):
            while True:
                for place in range(len(self.bases)):
                    with contextlib.suppress(CorralError):
                        if (await self.ask(place, "GET", "/readyz"))["reason"] == "ok: decides":
                            return place
                await asyncio.sleep(0.05)

    async def report(self, node: str) -> None:
        """One event after another, each until somebody acknowledges it."""
        place = NODES.index(node) % len(self.bases)
        told = False
        while True:
            number = self.acknowledged[node] + 1
            known = _facts(node) if not told else None
            made = batch(_event(node, number), node=node, first=number, facts=known, at=time.time())
            try:
                ack = await self.ask(place, "POST", "/api/v1/agent/batch", made)
            except CorralError:
                place, told = (place + 1) % len(self.bases), False
                await asyncio.sleep(0.1)
                continue
            told = not ack["want_facts"]
            self.acknowledged[node] = max(self.acknowledged[node], ack["position"])

    async def order(self) -> None:
        """One hold after another, each of its own reason, until somebody answers it."""
        place = 0
        while True:
            reason = f"order {len(self.ordered) + 1}"
            body = {"subject": {"gpu": "GPU-n1-0"}, "reason": reason, "owner": f"o{len(self.ordered)}"}
            try:
                await self.ask(place, "POST", "/api/v1/holds", body)
            except CorralError:
                place = (place + 1) % len(self.bases)
                await asyncio.sleep(0.1)
                continue
            self.ordered.append(reason)
            self.decided_at = time.monotonic()
            await asyncio.sleep(0.05)

    async def goes_on(self) -> None:
        """Wait until every node had some more events acknowledged, and some more orders were answered."""
        events, orders = dict(self.acknowledged), len(self.ordered)
        async with asyncio.timeout(90):
            while (
                any(self.acknowledged[node] < events[node] + CALM for node in NODES) or len(self.ordered) < orders + 3
            ):
                await asyncio.sleep(0.05)

    async def takes_over(self, place: int, since: float) -> float:
        """Seconds from ``since`` until the controller at ``place`` decides."""
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(CorralError):
                    if (await self.ask(place, "GET", "/readyz"))["reason"] == "ok: decides":
                        return time.monotonic() - since
                await asyncio.sleep(0.05)

    async def decides_again(self, since: float) -> float:
        """Seconds from ``since`` until an order was answered that was given after it."""
        orders = len(self.ordered)
        async with asyncio.timeout(60):
            while len(self.ordered) < orders + 2:  # the first may have been answered before
                await asyncio.sleep(0.02)
        return self.decided_at - since


@asynccontextmanager
async def fleet(folder: Path, keys: list[Keys]) -> AsyncIterator[Fleet]:
    ports = free_ports(len(keys))
    with contextlib.ExitStack() as stack:
        configs = [
            write_config(folder / f"c{place}", port, toml({**mine, "name": f"c{place}"}))
            for place, (port, mine) in enumerate(zip(ports, keys, strict=True))
        ]
        made = Fleet(ports, [stack.enter_context(running(config)) for config in configs])
        await made.leader()
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(made.report(node)) for node in NODES]
            await asyncio.sleep(0)
            async with asyncio.timeout(60):
                while not made.acknowledged["n1"]:
                    await asyncio.sleep(0.05)
            working.append(tasks.create_task(made.order()))
            yield made
            for task in working:
                task.cancel()
        for process in made.processes:
            process.send_signal(signal.SIGCONT)


async def check(server: Server, name: str, made: Fleet) -> None:
    """Nothing acknowledged is missing, and nothing is there twice."""

    async def inbox() -> int:
        return len(await server.run(name, "SELECT 1 FROM inbox WHERE answer IS NULL"))

    async with asyncio.timeout(60):
        while await inbox():
            await asyncio.sleep(0.1)
    stored = {row["id"] for row in await server.run(name, "SELECT id FROM events")}
    missing = [f"{node}-{n}" for node in NODES for n in range(1, made.acknowledged[node] + 1)]
    assert set(missing) <= stored
    twice = "SELECT key FROM changes WHERE kind = 'event' GROUP BY key HAVING count(*) > 1"
    assert await server.run(name, twice) == []
    holds = "SELECT line::json->>'reason' AS reason FROM changes WHERE kind = 'hold' AND line::json->>'op' = 'placed'"
    placed = [row["reason"] for row in await server.run(name, holds)]
    orders = [reason.partition(" (")[0] for reason in placed if reason.startswith("order ")]
    assert set(made.ordered) <= set(orders)
    assert len(orders) == len(set(orders))
    (row,) = await server.run(name, "SELECT count(*) AS rows, max(seq) AS newest FROM changes")
    assert row["rows"] == row["newest"]


@pytest.fixture(params=["direct", "pooler"])
def stored(request: pytest.FixtureRequest, postgres: Server) -> Any:
    """A database, and how a controller reaches it."""
    name = postgres.fresh()
    if request.param == "direct":
        yield name, postgres.settings(name)
        return
    with pooler(postgres) as folder:
        yield name, through(postgres, folder, name)


async def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()


async def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)


@pytest.mark.parametrize("harm", [_kill, _stop], ids=["killed", "stopped"])
async def test_nothing_is_lost_or_done_twice_when_the_leader_is(
    tmp_path: Path,
    stored: tuple[str, Keys],
    postgres: Server,
    harm: Callable[[Any], Any],
    request: pytest.FixtureRequest,
) -> None:
    name, keys = stored
    async with fleet(tmp_path, [keys, keys]) as made:
        await made.goes_on()
        place = await made.leader()
        first = made.processes[place]
        began = time.monotonic()
        await harm(first)
        over_s = await made.takes_over(1 - place, began)
        print(f"{request.node.name}: another controller decides after {over_s:.1f} s")
        print(f"{request.node.name}: an order was answered after {await made.decides_again(began):.1f} s")
        await made.goes_on()
        if harm is _stop:
            first.send_signal(signal.SIGCONT)
            await made.goes_on()
    await check(postgres, name, made)
