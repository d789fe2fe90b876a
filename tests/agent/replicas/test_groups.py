"""A group over two nodes with real processes: a core decides, two supervisors start and end what it wants.

The engine is a command of a few lines: rank 0 serves, the other waits. What they are told stands in their environment.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agent.replicas.launch import Launch, spawn_detached
from controller.core.core import Core
from controller.core.fleet.stimuli import Declared, Deployment, NodeReported, Replicas, Reported, Sampled
from tests.agent.replicas.node import Node, environment, until
from vocab.lines import ActionLine, AnyLine
from vocab.messages import GpuStatus, NodeFacts, ReplicaStatus
from vocab.observations import GpuIdentity
from vocab.readings import Readings
from vocab.states import ActionKind, ActionState, Level

PROGRAM = """
import http.server, os, sys, time
if os.environ["CORRAL_RANK"] != "0":
    time.sleep(600)
class Door(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Door).serve_forever()
"""
NAMES = ("n1", "n2")
WIDE = Deployment(
    name="wide",
    gpus_per_replica=4,
    nodes_per_replica=2,
    engine="command",
    drain_s=5.0,
    kill_s=1.0,
    options={"command": [sys.executable, "-c", PROGRAM, "{port}"]},
)


def quick(launch: Launch) -> int:
    return spawn_detached(Launch(tuple(word for word in launch.argv if word), launch.env, launch.log))


class House:
    """A core and two nodes of two GPUs; ``turn`` is what passes between them in a heartbeat."""

    def __init__(self, folder: Path) -> None:
        self.core = Core()
        self.nodes = {name: Node(folder / name) for name in NAMES}
        self.lines: list[AnyLine] = []
        for name, node in self.nodes.items():
            node.make(node=name, spawn=quick)
            gpus = tuple(GpuIdentity(uuid=f"GPU-{name}-{n}", index=n, pci=f"0000:0{n + 1}:00") for n in range(2))
            self._tell(NodeReported(facts=NodeFacts(node=name, boot_id="b", level=Level.REPAIR, gpus=gpus)))
        self._tell(Declared(deployment=WIDE))

    def _tell(self, stimulus: NodeReported | Declared | Reported | Sampled | Replicas) -> None:
        self.lines += self.core.take(stimulus, time.time())

    def turn(self) -> None:
        """Each node reports and hears what it should run."""
        for name, node in self.nodes.items():
            readings = (GpuStatus(gpu=f"GPU-{name}-{n}", at=time.time(), readings=Readings()) for n in range(2))
            self._tell(Reported(node=name))
            self._tell(Sampled(node=name, gpus=tuple(readings)))
            self._tell(Replicas(node=name, statuses=node.supervisor.statuses()))
            desired = self.core.desired(name)
            if desired is not None:
                node.supervisor.converge(desired.replicas)
        self.lines += self.core.tick(time.time())

    async def comes_to(self, what: Callable[[], object], said: str) -> None:
        async def turns() -> None:
            while True:
                self.turn()
                await asyncio.sleep(0.1)

        task = asyncio.create_task(turns())
        try:
            await until(what, said)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def is_ready(self) -> bool:
        return self.core.view().deployments[0].ready == 1

    def stops(self) -> list[ActionLine]:
        return [line for line in self.lines if isinstance(line, ActionLine) and line.of is ActionKind.STOP_REPLICA]

    def living(self) -> list[ReplicaStatus]:
        found = (status for node in self.nodes.values() for status in node.supervisor.statuses())
        return [status for status in found if status.pid is not None]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path)
    for node in made.nodes.values():
        node.run()
    yield made
    for node in made.nodes.values():
        await node.halt()
        node.sweep()


async def test_a_group_starts_with_ranks_and_when_a_part_dies_all_of_it_ends_and_another_starts(house: House) -> None:
    await house.comes_to(lambda: house.is_ready, "the group is ready")
    leads, other = sorted(house.living(), key=lambda status: int(told(status)["CORRAL_RANK"]))
    assert leads.replica == other.replica
    assert told(leads)["CORRAL_WORLD_SIZE"] == told(other)["CORRAL_WORLD_SIZE"] == "2"
    assert told(leads)["CORRAL_LEADER"] == told(other)["CORRAL_LEADER"] == leads.members[0].node
    assert told(leads)["CORRAL_LEADER_PORT"] == told(other)["CORRAL_LEADER_PORT"]

    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    await house.comes_to(lambda: ActionState.DONE in [stop.state for stop in house.stops()], "all of it has ended")
    assert leads.pid not in [status.pid for status in house.living()]
    assert len({stop.id for stop in house.stops()}) == 1


def told(status: ReplicaStatus) -> dict[str, str]:
    pairs = (word.decode().partition("=") for word in environment(status.pid))
    return {name: text for name, _, text in pairs if name.startswith("CORRAL_")}
