"""Against an API server: a fake of ours; and, where KUBECONFIG names a real one, most of it against that."""

import asyncio
import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.config import KubernetesConfig
from controller.adapters.kubernetes.api import Api, Failure
from controller.adapters.kubernetes.kubernetes import Kubernetes
from controller.adapters.kubernetes.nodes import CONDITION, HELD, HOLD
from controller.core.fleet.stimuli import Managed
from controller.core.fleet.views import OwnerOrder
from tests.fakes.kubernetes.server import FakeKubernetes, write_kubeconfig
from vocab.clock import SystemClock
from vocab.errors import Refused, Unreachable
from vocab.lines import ActionLine, Subject
from vocab.observations import Owner
from vocab.states import ActionKind, ActionState

WAIT_S = 60.0
GPU = "GPU-0001"
REAL = os.environ.get("KUBECONFIG")
KUBECTL = shutil.which("kubectl")
_numbers = itertools.count(1)


class Scene:
    """A cluster and an adapter of it; ``fake`` is None where the cluster is real."""

    def __init__(self, kubeconfig: Path, fake: FakeKubernetes | None) -> None:
        self.fake = fake
        self.kubeconfig = kubeconfig
        self.api = Api(KubernetesConfig(kubeconfig=str(kubeconfig)))
        self.made: list[str] = []
        self._adapters: list[Kubernetes] = []
        self.node = f"corral-test-{os.getpid()}-{next(_numbers)}"

    def adapter(self, **more: Any) -> Kubernetes:
        found = Kubernetes(KubernetesConfig(kubeconfig=str(self.kubeconfig), **more), SystemClock())
        self._adapters.append(found)
        return found

    async def add_node(self) -> None:
        await self.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}})

    async def add_pod(self, name: str, **meta: Any) -> dict[str, Any]:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **meta},
            "spec": {"nodeName": self.node, "containers": [{"name": "engine", "image": "engine"}]},
        }
        return await self.post("/api/v1/namespaces/default/pods", body)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.made.append(f"{path}/{body['metadata']['name']}")
        return await self.api.call("POST", path, body)

    async def get(self) -> dict[str, Any]:
        return await self.api.call("GET", f"/api/v1/nodes/{self.node}")

    async def patch(self, body: dict[str, Any]) -> None:
        await self.api.call("PATCH", f"/api/v1/nodes/{self.node}", body, kind="application/merge-patch+json")

    async def seen(self, adapter: Kubernetes, when: Callable[[Managed], bool]) -> Managed:
        """What the adapter says of the node once it says so."""
        async with asyncio.timeout(WAIT_S):
            while True:
                found = [one for one in await adapter.look() if one.node == self.node]
                if found and when(found[0]):
                    return found[0]
                await asyncio.sleep(0.02)

    def order(self, of: ActionKind, **more: Any) -> OwnerOrder:
        action = ActionLine(
            at=0.0, subject=Subject(node=self.node), id="a-1", of=of, state=ActionState.ORDERED, token="1.1",
            rule="manager/kubernetes", policy="p", why="xid:95 on GPU 0",
        )  # fmt: skip
        return OwnerOrder(by="kubernetes", action=action, node=self.node, hold="h-1", **more)

    def eviction(self, pod: str) -> OwnerOrder:
        return self.order(DRAIN, replica=f"{pod}:8000@{self.node}", owner=Owner(kind="kubernetes", name=pod))

    async def close(self) -> None:
        for adapter in self._adapters:
            await adapter.close()
        for path in reversed(self.made if self.fake is None else []):
            with contextlib.suppress(Failure):
                await self.api.call("DELETE", path, {"gracePeriodSeconds": 0})
        await self.api.close()


DRAIN, RELEASE = ActionKind.DRAIN, ActionKind.RELEASE


@pytest.fixture(params=["fake", "real"] if REAL else ["fake"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    if request.param == "real":
        found = Scene(Path(str(REAL)), None)
        await found.add_node()
        yield found
        await found.close()
        return
    fake = FakeKubernetes(dra=True)
    async with fake.running() as address:
        found = Scene(write_kubeconfig(tmp_path / "kubeconfig", address), fake)
        await found.add_node()
        yield found
        await found.close()


@pytest.fixture
def fake(scene: Scene) -> FakeKubernetes:
    """For what only a fake can be made to do."""
    if scene.fake is None:
        pytest.skip("a real API server does not do this on demand")
    return scene.fake


# -- nodes ------------------------------------------------------------------------------------------------


async def test_a_node_is_cordoned_tainted_annotated_and_its_condition_says_so(scene: Scene) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    assert (await scene.seen(adapter, lambda _: True)).grain == "node"
    for _ in range(2):
        await adapter.act(scene.order(DRAIN))
    node = await scene.get()
    assert node["spec"]["unschedulable"] is True
    assert [(t["key"], t["value"], t["effect"]) for t in node["spec"]["taints"] if t["key"] == HELD] == [
        (HELD, "h-1", "NoSchedule")
    ]
    assert '"hold":"h-1"' in node["metadata"]["annotations"][HOLD]
    assert [c["status"] for c in node["status"]["conditions"] if c["type"] == CONDITION] == ["True"]
    one = await scene.seen(adapter, lambda one: bool(one.ours))
    assert (one.ours, one.busy, one.other) == ((scene.node,), False, "")


async def test_it_is_given_back_as_it_was(scene: Scene) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    await scene.patch({"spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]}})
    await adapter.act(scene.order(DRAIN))
    await scene.seen(adapter, lambda one: bool(one.ours))
    for _ in range(2):
        await adapter.act(scene.order(RELEASE))
    node = await scene.get()
    assert not node["spec"].get("unschedulable")
    keys = {taint["key"] for taint in node["spec"]["taints"]}
    assert "theirs" in keys
    assert HELD not in keys
    assert HOLD not in node["metadata"].get("annotations", {})
    assert (await scene.seen(adapter, lambda one: not one.ours)).other == ""


async def test_a_cordon_that_somebody_else_set_is_left_alone(scene: Scene) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    await scene.patch({"spec": {"unschedulable": True}})
    await adapter.act(scene.order(DRAIN))
    await adapter.act(scene.order(RELEASE))
    node = await scene.get()
    assert node["spec"]["unschedulable"] is True
    assert HOLD not in node["metadata"].get("annotations", {})
    one = await scene.seen(adapter, lambda one: bool(one.other))
    assert (one.ours, one.other) == ((), "cordoned in kubernetes by somebody else")


async def test_uncordoned_by_a_person_our_mark_no_longer_stands(scene: Scene) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    await adapter.act(scene.order(DRAIN))
    await scene.seen(adapter, lambda one: bool(one.ours))
    await scene.patch({"spec": {"unschedulable": None}})
    await scene.seen(adapter, lambda one: not one.ours)
    await adapter.act(scene.order(RELEASE))  # and what is left of it goes
    assert HELD not in {taint["key"] for taint in (await scene.get())["spec"].get("taints") or []}


@pytest.mark.parametrize(
    ("metadata", "who"),
    [
        ({"labels": {"dgxc.nvidia.com/nvsentinel-state": "draining"}}, "NVSentinel"),
        ({"annotations": {"quarantineHealthEvent": "[]"}}, "NVSentinel"),
        ({"labels": {"dgxc.nvidia.com/nvsentinel-state": "remediation-succeeded"}}, None),
        ({"labels": {"our.org/in-repair": "yes"}}, "another remediator"),
    ],
)
async def test_another_remediator_is_named_and_left_alone(
    scene: Scene, metadata: dict[str, Any], who: str | None
) -> None:
    adapter = scene.adapter(cordon_nodes=True, foreign_keys=("our.org/in-repair",))
    await scene.patch({"metadata": metadata})
    one = await scene.seen(adapter, lambda one: bool(one.other) or who is None)
    assert one.other.startswith(f"{who} is at work on it" if who else "")
    await adapter.act(scene.order(DRAIN))
    assert bool((await scene.get())["spec"].get("unschedulable")) is (who is None)


async def test_a_taint_of_a_cloud_is_another_remediator(scene: Scene) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    taint = {"key": "remediator.aks.microsoft.com/unschedulable", "effect": "NoSchedule"}
    await scene.patch({"spec": {"taints": [taint]}})
    assert "Azure" in (await scene.seen(adapter, lambda one: bool(one.other))).other


async def test_a_node_that_changes_meanwhile_is_read_again(scene: Scene, fake: FakeKubernetes) -> None:
    fake.conflicts = 3
    await scene.adapter(cordon_nodes=True).act(scene.order(DRAIN))
    assert (await scene.get())["spec"]["unschedulable"] is True
    fake.conflicts = 100
    with pytest.raises(Unreachable, match="changes faster"):
        await scene.adapter(cordon_nodes=True).act(scene.order(RELEASE))


async def test_who_may_not_is_refused_with_what_to_do(scene: Scene, fake: FakeKubernetes) -> None:
    fake.denied = {"PATCH"}
    with pytest.raises(Refused, match=r"rbac\.yaml"):
        await scene.adapter(cordon_nodes=True).act(scene.order(DRAIN))


# -- the watch --------------------------------------------------------------------------------------------


async def test_a_watch_that_breaks_goes_on_where_it_was(scene: Scene, fake: FakeKubernetes) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    await scene.seen(adapter, lambda _: fake.watches == 1)
    await fake.drop_watches()
    await scene.patch({"spec": {"unschedulable": True}})
    await scene.seen(adapter, lambda one: bool(one.other))
    assert (fake.watches, adapter._mirror.lists) == (2, 1)


async def test_a_version_that_the_server_has_forgotten_is_a_new_list(scene: Scene, fake: FakeKubernetes) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    await scene.seen(adapter, lambda _: fake.watches == 1)
    await fake.compact()
    await scene.patch({"spec": {"unschedulable": True}})
    await scene.seen(adapter, lambda one: bool(one.other))
    assert adapter._mirror.lists == 2


async def test_one_that_was_closed_lists_anew_and_shows_nothing_old(scene: Scene, fake: FakeKubernetes) -> None:
    adapter = scene.adapter(cordon_nodes=True)
    await scene.seen(adapter, lambda _: fake.watches == 1)
    await adapter.close()
    await scene.patch({"spec": {"unschedulable": True}})
    await scene.seen(adapter, lambda one: bool(one.other))
    assert adapter._mirror.lists == 2


async def test_many_nodes_come_in_pages_and_one_that_is_deleted_goes(scene: Scene, fake: FakeKubernetes) -> None:
    for number in range(1100):
        await fake.create("nodes", "", {"metadata": {"name": f"other-{number}"}})
    adapter = scene.adapter(device_taints=False)
    assert len(await adapter.look()) == 1101
    await scene.api.call("DELETE", "/api/v1/nodes/other-7")
    async with asyncio.timeout(WAIT_S):
        while len(await adapter.look()) != 1100:
            await asyncio.sleep(0.02)


async def test_one_that_is_down_is_unreachable(scene: Scene, fake: FakeKubernetes) -> None:
    fake.down = True
    with pytest.raises(Unreachable, match="503"):
        await scene.adapter().look()


# -- pods -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_uid", [True, False])
async def test_a_pod_is_evicted_by_its_uid_or_name_and_its_neighbours_stay(scene: Scene, by_uid: bool) -> None:
    pod = await scene.add_pod("chat-7d9f8-abcde")
    await scene.add_pod("chat-7d9f8-other")
    adapter = scene.adapter()
    name = pod["metadata"]["uid"] if by_uid else pod["metadata"]["name"]
    for _ in range(2):
        await adapter.act(scene.eviction(name))
    left = await scene.api.call("GET", "/api/v1/pods", fieldSelector=f"spec.nodeName={scene.node}")
    alive = [one["metadata"]["name"] for one in left["items"] if not one["metadata"].get("deletionTimestamp")]
    assert alive == ["chat-7d9f8-other"]


async def test_a_disruption_budget_is_waited_for_and_nothing_is_deleted(scene: Scene) -> None:
    await scene.add_pod("guarded", labels={"app": "chat"})
    selector = {"matchLabels": {"app": "chat"}}
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "chat"},
        "spec": {"minAvailable": 1, "selector": selector},
    }  # fmt: skip
    await scene.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    adapter = scene.adapter()
    with pytest.raises(Unreachable, match="may not go yet"):
        await adapter.act(scene.eviction("guarded"))
    await scene.api.call("DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/chat")
    await adapter.act(scene.eviction("guarded"))
    if scene.fake is not None:
        assert scene.fake.evictions == ["guarded"]
        assert scene.fake.deleted == ["poddisruptionbudgets/chat"]


async def test_a_pod_that_would_come_back_is_refused(scene: Scene) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "exporter", "uid": "0"}
    await scene.add_pod("exporter-x", ownerReferences=[owner])
    with pytest.raises(Refused, match="DaemonSet"):
        await scene.adapter().act(scene.eviction("exporter-x"))


async def test_only_somebodys_work_makes_a_node_busy(scene: Scene) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "exporter", "uid": "0"}
    adapter = scene.adapter(cordon_nodes=True)
    await adapter.act(scene.order(DRAIN))
    await scene.add_pod("exporter-x", ownerReferences=[owner])
    assert (await scene.seen(adapter, lambda one: bool(one.ours))).busy is False
    await scene.add_pod("training-0")
    assert (await scene.seen(adapter, lambda one: bool(one.ours))).busy is True


# -- devices ----------------------------------------------------------------------------------------------


def device_slice(node: str) -> dict[str, Any]:
    devices = [{"name": f"gpu-{index}", "attributes": {"uuid": {"string": f"GPU-000{index}"}}} for index in range(2)]
    spec = {"driver": "gpu.nvidia.com", "nodeName": node, "pool": {"name": node}, "devices": devices}
    return {"metadata": {"name": f"{node}-gpus"}, "spec": spec}


async def test_where_a_driver_publishes_devices_one_gpu_is_tainted(scene: Scene, fake: FakeKubernetes) -> None:
    await fake.create("resourceslices", "", device_slice(scene.node))
    adapter = scene.adapter(cordon_nodes=True)
    assert (await scene.seen(adapter, lambda _: True)).grain == "gpu"
    for _ in range(2):
        await adapter.act(scene.order(DRAIN, gpu=GPU))
    (rule,) = fake.objects["devicetaintrules"].values()
    assert rule["apiVersion"] == "resource.k8s.io/v1beta2"
    assert rule["spec"] == {
        "deviceSelector": {"driver": "gpu.nvidia.com", "pool": scene.node, "device": "gpu-1"},
        "taint": {"key": HELD, "value": "h-1", "effect": "NoSchedule"},
    }
    one = await scene.seen(adapter, lambda one: bool(one.ours))
    assert (one.ours, one.other) == ((GPU,), "")
    node = await scene.get()
    assert not node["spec"].get("unschedulable")
    assert [c["status"] for c in node["status"]["conditions"] if c["type"] == CONDITION] == ["True"]
    await adapter.act(scene.order(RELEASE, gpu=GPU))
    assert fake.objects["devicetaintrules"] == {}
    assert (await scene.seen(adapter, lambda one: not one.ours)).grain == "gpu"
    assert [c["status"] for c in (await scene.get())["status"]["conditions"] if c["type"] == CONDITION] == ["False"]


async def test_without_devices_and_without_leave_to_cordon_nothing_can_be_kept_off(scene: Scene) -> None:
    assert (await scene.seen(scene.adapter(), lambda _: True)).grain == "none"


# -- kubectl ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not here, and no package of Debian; see kubernetes.io")
async def test_kubectl_cordons_and_drains_it_as_any_other(scene: Scene, fake: FakeKubernetes) -> None:
    """So the fake behaves as a client that is not ours expects."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat", "uid": "1", "controller": True}
    await scene.add_pod("chat-0", ownerReferences=[owner])

    async def run(*words: str) -> str:
        command = [str(KUBECTL), f"--kubeconfig={scene.kubeconfig}", "--cache-dir=/dev/null", *words]
        told = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)
        assert told.returncode == 0, told.stderr
        return told.stdout

    assert "cordoned" in await run("cordon", scene.node)
    assert "evicted" in await run("drain", scene.node, "--timeout=20s")
    assert fake.evictions == ["chat-0"]
    assert "uncordoned" in await run("uncordon", scene.node)
