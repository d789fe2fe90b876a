"""A small agent for tests: it runs what it is told, at once, and reports."""

import asyncio

from msgspec.structs import replace

from tests.controller.house import NODE, House, batch, event, facts
from vocab.events import Event
from vocab.messages import Batch, Desired, FenceItem, GpuStatus, ReplicaStatus, Sequenced
from vocab.observations import Exit
from vocab.readings import Readings
from vocab.states import Level

IDLE = Readings(utilization_ratio=0.0, sm_active_ratio=0.0, temperature_c=34.0, power_w=71.0)


class Node:
    """What the agent of ``NODE`` would say."""

    def __init__(self, home: House) -> None:
        self.home = home
        self.generation = 0
        self.position = 0
        self.sampled_at = 0.0
        self.replicas: tuple[ReplicaStatus, ...] = ()
        self.readings: dict[str, Readings] = {}
        self.facts = replace(facts(gpus=8), level=Level.REPAIR)

    def report(self, *items: Event | FenceItem) -> Batch:
        made = batch(facts=self.facts, generation=self.generation, replicas=self.replicas, gpus=self.samples())
        plain = [batch(item).items[0].item if isinstance(item, Event) else item for item in items]
        numbered = [Sequenced(self.position + place, item) for place, item in enumerate(plain, 1)]
        return replace(made, items=tuple(numbered))

    def samples(self) -> tuple[GpuStatus, ...]:
        self.sampled_at += 1.0
        uuids = [gpu.uuid for gpu in self.facts.gpus]
        return tuple(GpuStatus(gpu=u, at=self.sampled_at, readings=self.readings.get(u, IDLE)) for u in uuids)

    async def send(self, *items: Event | FenceItem) -> None:
        ack = await self.home.post("agent/batch", self.report(*items))
        self.position = ack["position"] or self.position

    async def obey(self) -> Desired:
        """Take the desired state, and be as it says: what should run is ready, what should drain has ended."""
        desired = await self.home.call("GET", "/api/v1/agent/desired", Desired, node=NODE, wait_s=0)
        self.generation = desired.generation
        self.replicas = tuple(
            ReplicaStatus(
                replica=spec.replica,
                deployment=spec.deployment,
                members=spec.members,
                phase="ready" if spec.phase == "run" else "stopped",
                ready=spec.phase == "run",
                admitting=spec.phase == "run",
                url=f"http://127.0.0.1:{7430 + place}",
                token=spec.token,
                exit=None if spec.phase == "run" else Exit(code=0),
            )
            for place, spec in enumerate(desired.replicas)
        )
        return desired

    async def settle(self) -> Desired:
        """Obey and report until nothing changes any more."""
        async with asyncio.timeout(60):
            while True:
                before = self.generation, self.replicas
                desired = await self.obey()
                await self.send()
                if (self.generation, self.replicas) == before:
                    return desired


def fence(seen: Event) -> FenceItem:
    assert seen.gpu is not None
    return FenceItem(at=0.0, node=NODE, gpu=seen.gpu, op="placed", event=seen.id, why="xid:79")


async def break_gpu(home: House) -> tuple[Node, str]:
    """A node that serves ``chat``, one of whose GPUs falls off the bus; settled again."""
    node = Node(home)
    await node.send()
    desired = await node.settle()
    gpu = desired.replicas[0].members[0].gpu
    seen = event(1, gpu=int(gpu.removeprefix("GPU-"), 16))
    await node.send(seen, fence(seen))
    await node.settle()
    return node, gpu
