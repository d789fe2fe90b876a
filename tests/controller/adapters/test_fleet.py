"""A controller and a cluster: a fault closes the GPU there, its pod is evicted, and all is given back in the end."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from controller.adapters.config import HookConfig, KubernetesConfig
from controller.config import DeploymentConfig
from controller.deciding.mind import real_core
from tests.controller.adapters.test_kubernetes import device_slice
from tests.controller.house import NODE, House, event, house, uuid
from tests.controller.node import Node
from tests.fakes.kubernetes.server import FakeKubernetes, write_kubeconfig
from vocab.messages import ReplicaStatus
from vocab.observations import Member, Owner
from vocab.states import Level

WAIT_S = 60.0
POD = "chat-7d9f8-abcde"


def observed(gpu: str, owner: Owner) -> ReplicaStatus:
    return ReplicaStatus(
        replica=f"{owner.name}:8000@{NODE}", deployment="chat", members=(Member(node=NODE, gpu=gpu, rank=0),),
        phase="ready", ready=True, admitting=True, observed=True, owner=owner, engine="vllm", model="chat",
    )  # fmt: skip


class Agent(Node):
    """The agent of a node on which pods run."""

    async def tell(self, *replicas: ReplicaStatus) -> None:
        self.replicas = replicas
        await self.send()


async def happens(what: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not what():
            await asyncio.sleep(0.02)


def gpu_of(index: int) -> str:
    return uuid(index)


async def cluster(fake: FakeKubernetes) -> None:
    await fake.create("nodes", "", {"metadata": {"name": NODE}})
    slice_ = device_slice(NODE)
    for index, device in enumerate(slice_["spec"]["devices"]):
        device["attributes"]["uuid"]["string"] = gpu_of(index)
    await fake.create("resourceslices", "", slice_)
    for name in (POD, "chat-7d9f8-fghij"):
        await fake.create("pods", "default", {"metadata": {"name": name}, "spec": {"nodeName": NODE}})


async def test_one_gpu_is_tainted_its_pod_evicted_and_its_neighbour_serves_on(tmp_path: Path) -> None:
    fake = FakeKubernetes(dra=True)
    chat = DeploymentConfig(name="chat", replicas=2, min_ready=1, model="chat", managed_by="kubernetes")
    async with fake.running() as address:
        await cluster(fake)
        config = KubernetesConfig(kubeconfig=str(write_kubeconfig(tmp_path / "kubeconfig", address)), look_s=0.2)
        async with house(tmp_path / "state", make_core=real_core, kubernetes=config, deployments=(chat,)) as home:
            agent = Agent(home)
            kept = observed(gpu_of(1), Owner(kind="kubernetes", name="chat-7d9f8-fghij"))
            await agent.tell(observed(gpu_of(0), Owner(kind="kubernetes", name=POD)), kept)
            await agent.tell(*agent.replicas)
            await until_up(home)
            await agent.send(event(1, gpu=0))
            await happens(lambda: fake.objects["devicetaintrules"])
            await happens(lambda: fake.evictions)
            assert fake.evictions == [POD]
            assert fake.deleted == []
            await agent.tell(kept)
            holds = await home.get("holds")
            assert [hold["subject"] for hold in holds] == [{"gpu": gpu_of(0)}]
            await home.post("releases", {"subject": {"gpu": gpu_of(0)}, "reason": "new board"})
            await happens(lambda: not fake.objects["devicetaintrules"])
            assert not fake.objects["nodes"]["", NODE]["spec"].get("unschedulable")


async def test_a_controller_that_is_killed_between_act_and_answer_does_it_once_more_to_the_same_end(
    tmp_path: Path,
) -> None:
    fake = FakeKubernetes(dra=True)
    async with fake.running() as address:
        await cluster(fake)
        config = KubernetesConfig(kubeconfig=str(write_kubeconfig(tmp_path / "kubeconfig", address)), look_s=0.2)
        async with house(tmp_path / "state", make_core=real_core, kubernetes=config) as home:
            agent = Agent(home)
            await agent.send()
            await until_up(home)
            fake.denied = {"PATCH"}  # the rule is placed, and what should follow it fails
            await home.post("holds", {"subject": {"gpu": gpu_of(0)}, "reason": "fan"})
            await happens(lambda: fake.objects["devicetaintrules"])
        fake.denied = set()
        async with house(tmp_path / "state", make_core=real_core, kubernetes=config) as home:
            agent.home = home
            await agent.send()
            await happens(lambda: len(fake.objects["devicetaintrules"]) == 1)
            (hold,) = await home.get("holds")
            await home.raw("DELETE", f"/api/v1/holds/{hold['id']}", json={"reason": "done"})
            await happens(lambda: not fake.objects["devicetaintrules"])


async def test_below_its_level_nothing_is_done_in_the_cluster(tmp_path: Path) -> None:
    fake = FakeKubernetes(dra=True)
    async with fake.running() as address:
        await cluster(fake)
        before = fake.version
        config = KubernetesConfig(kubeconfig=str(write_kubeconfig(tmp_path / "kubeconfig", address)), look_s=0.1)
        async with house(tmp_path / "state", make_core=real_core, kubernetes=config) as home:
            agent = Agent(home)
            agent.facts = replace(agent.facts, level=Level.OBSERVE)
            await agent.send()
            await until_up(home)
            await agent.send(event(1, gpu=0))
            await home.post("holds", {"subject": {"gpu": gpu_of(1)}, "reason": "fan"})
            looks = fake.watches
            await until_up(home)
            assert (fake.version, looks) == (before, fake.watches)
            would = [action for action in await home.get("actions") if action["state"] == "would"]
            assert {action["of"] for action in would} >= {"drain"}


async def test_a_hook_is_run_for_what_it_manages(tmp_path: Path) -> None:
    out = tmp_path / "asked"
    program = tmp_path / "hook"
    program.write_text(f"#!/bin/sh\ncat >> {out}\n")
    program.chmod(0o755)
    chat = DeploymentConfig(name="chat", replicas=1, min_ready=0, model="chat", managed_by="hook")
    hook = HookConfig(command=(str(program),))
    async with house(tmp_path / "state", make_core=real_core, hook=hook, deployments=(chat,)) as home:
        agent = Agent(home)
        await agent.tell(observed(gpu_of(0), Owner(kind="process", name="server")))
        await agent.tell(*agent.replicas)
        await until_up(home, "hook")
        await agent.send(event(1, gpu=0))
        await happens(lambda: out.exists() and out.read_text())
        assert '"replica":"server:8000@n1"' in out.read_text()


async def until_up(home: House, manager: str = "kubernetes") -> None:
    async with asyncio.timeout(WAIT_S):
        while f'corral_manager_up{{manager="{manager}"}} 1.0' not in (await home.raw("GET", "/metrics"))[1]:
            await asyncio.sleep(0.05)
