"""The node as active checks see it: its GPUs, who keeps and uses them, and what serves beside them."""

import asyncio
from collections.abc import Callable, Mapping

from agent.diag.bench import Bench
from agent.diag.leave import Standing
from agent.diag.pace import Tokens, tokens_in
from agent.hardware import Hardware
from agent.latest import Latest
from agent.loop import Loop
from agent.replicas.door import Door
from agent.replicas.supervisor import Supervisor
from agent.warden import Warden
from vocab.messages import ReplicaStatus
from vocab.observations import Check, GpuIdentity, GpuSample


class NodeGround:
    """What ``agent.diag`` asks, from what the agent holds in memory."""

    def __init__(
        self,
        *,
        hardware: Hardware,
        loop: Loop,
        latest: Latest,
        supervisor: Supervisor,
        warden: Warden,
        observed: Callable[[], tuple[ReplicaStatus, ...]],
    ) -> None:
        self._hardware = hardware
        self._loop = loop
        self._latest = latest
        self._supervisor = supervisor
        self._warden = warden
        self._observed = observed

    @property
    def node(self) -> str:
        """Its name."""
        return self._loop.node

    def gpus(self) -> tuple[GpuIdentity, ...]:
        """Of the inventory."""
        return self._latest.seen.gpus if self._latest.seen else ()

    def sample(self, gpu: str) -> GpuSample | None:
        """The last reading of a GPU, if it is young enough."""
        return self._latest.fresh(gpu, self._loop.now())

    def standing(self) -> Standing:
        """Who keeps and uses the GPUs."""
        living = self._living()
        users = {gpu.uuid: self._users(gpu.uuid, living) for gpu in self.gpus()}
        return Standing(kept=self._kept(), users=users, serving=tuple(status.replica for status in living))

    def bench(self, gpu: str) -> Bench:
        """On what its tests run."""
        return self._hardware.bench(gpu)

    async def tokens(self) -> Mapping[str, Tokens]:
        """What the replicas of the node have counted, as far as their /metrics tell."""
        doors = {status.replica: status.url for status in self._living() if status.url}
        async with Door() as door:
            texts = await asyncio.gather(*(door.metrics(url) for url in doors.values()))
        told = {replica: tokens_in(text) for replica, text in zip(doors, texts, strict=True) if text is not None}
        return {replica: tokens for replica, tokens in told.items() if tokens is not None}

    def take(self, observation: Check) -> None:
        """Judge it."""
        self._loop.take(observation)

    def _living(self) -> tuple[ReplicaStatus, ...]:
        """Replicas with a process, ours and others'."""
        return tuple(each for each in (*self._supervisor.statuses(), *self._observed()) if each.pid is not None)

    def _kept(self) -> frozenset[str]:
        holds = self._warden.desired.holds if self._warden.desired is not None else ()
        if any(hold.gpu is None for hold in holds):  # of the whole node
            return frozenset(gpu.uuid for gpu in self.gpus())
        return self._warden.fences.gpus | {hold.gpu for hold in holds if hold.gpu is not None}

    def _users(self, gpu: str, living: tuple[ReplicaStatus, ...]) -> tuple[str, ...] | None:
        view = self._latest.gpus.get(gpu)
        processes = view.processes if view is not None else None
        if processes is None:
            return None
        ours = self._hardware.driver_pids()
        replicas = [each.replica for each in living if any(member.gpu == gpu for member in each.members)]
        return (*replicas, *(f"process {one.pid}" for one in processes if one.pid not in ours))
