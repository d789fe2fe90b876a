"""The adapter of Kubernetes.

    closed   a GPU by a DeviceTaintRule where a DRA driver publishes it, else its node by cordon and taint, if allowed
    ended    pods by eviction, each as its PodDisruptionBudget allows
    said     an annotation and a condition of the node

A mark is changed only under the ``resourceVersion`` under which it was read; on a conflict it is read again.
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus

from controller.adapters.config import KubernetesConfig
from controller.adapters.kubernetes import nodes, pods
from controller.adapters.kubernetes.api import MERGE, STRATEGIC, Api, Body, Failure, told
from controller.adapters.kubernetes.devices import Devices
from controller.adapters.kubernetes.mirror import NODES, Mirror
from controller.core.fleet.stimuli import Managed
from controller.core.fleet.views import OwnerOrder
from vocab.clock import Clock
from vocab.errors import Refused, Unreachable
from vocab.events import rfc3339
from vocab.states import ActionKind

CONFLICTS = 5  # a node is written by its kubelet every few seconds, and rarely twice in our milliseconds


class Kubernetes:
    """One cluster."""

    name = "kubernetes"

    def __init__(self, config: KubernetesConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._api = Api(config)
        self._mirror = Mirror(self._api)
        self._devices = Devices(self._api, config.device_driver)

    async def look(self) -> Sequence[Managed]:
        """All nodes. Raises Unreachable or Refused."""
        found = await self._mirror.look()
        if self._config.device_taints:
            await self._devices.look()
        return [await self._managed(name, node) for name, node in list(found.items())]

    async def _managed(self, name: str, node: Body) -> Managed:
        devices = self._devices.nodes.get(name, set())
        closed = nodes.is_ours(node)
        marks = [name] if closed else []
        return Managed(
            node=name,
            by=self.name,
            grain="gpu" if devices else "node" if self._config.cordon_nodes else "none",
            ours=tuple(marks + sorted(devices & self._devices.tainted)),
            busy=any(map(pods.is_work, await pods.on(self._api, name))) if closed else None,
            other=nodes.other(node, self._config.foreign_keys),
        )

    async def act(self, order: OwnerOrder) -> None:
        """Close, open or evict. Raises Unreachable or Refused."""
        closes = order.action.of is ActionKind.DRAIN
        try:
            if order.replica is not None:
                await self._evict(order)
            elif order.gpu is not None:
                await (self._taint(order) if closes else self._free(order))
            else:
                await self._change(order.node, lambda node: self._patch(node, order, closes=closes))
                await self._say(order.node, order.action.why, held=closes)
        except Failure as failure:
            raise told(failure, f"{order.action.of} {order.gpu or order.node}") from failure

    async def _evict(self, order: OwnerOrder) -> None:
        if order.owner is None:
            raise Refused(f"nobody knows which pod {order.replica} runs in")
        pod = pods.named(await pods.on(self._api, order.node), order.owner.name)
        if pod is not None:
            await pods.evict(self._api, pod)

    async def _taint(self, order: OwnerOrder) -> None:
        gpu = order.gpu or ""
        if gpu not in self._devices.known:
            raise Unreachable(f"kubernetes publishes no device for {gpu}: nothing can be kept off it yet")
        await self._devices.taint(gpu, order.hold, order.action.why)
        await self._change(order.node, lambda node: nodes.annotation(node, order.hold, order.action.why))
        await self._say(order.node, order.action.why, held=True)

    async def _free(self, order: OwnerOrder) -> None:
        await self._devices.free(order.gpu or "")
        left = self._devices.nodes.get(order.node, set()) & self._devices.tainted - {order.gpu}
        if not left:
            await self._change(order.node, lambda node: nodes.annotation(node, None, ""))
            await self._say(order.node, order.action.why, held=False)

    def _patch(self, node: Body, order: OwnerOrder, *, closes: bool) -> Body | None:
        """What to change on a node that was just read; None if it is as wanted, or not ours to change."""
        if closes:
            left_alone = nodes.is_ours(node) or nodes.other(node, self._config.foreign_keys)
            return None if left_alone else nodes.closing(node, order.hold, order.action.why)
        return nodes.opening(node) if nodes.has_remains(node) else None

    async def _change(self, name: str, patch: Callable[[Body], Body | None]) -> None:
        """Read, patch, and read again if it has changed in between. Raises Failure or Unreachable."""
        for _ in range(CONFLICTS):
            node = await self._api.call("GET", f"{NODES}/{name}")
            body = patch(node)
            if body is None:
                self._mirror.take(node)
                return
            try:
                self._mirror.take(await self._api.call("PATCH", f"{NODES}/{name}", body, kind=MERGE))
            except Failure as failure:
                if failure.status != HTTPStatus.CONFLICT:
                    raise
            else:
                return
        raise Unreachable(f"kubernetes: node {name} changes faster than it can be read")

    async def _say(self, name: str, why: str, *, held: bool) -> None:
        at = rfc3339(self._clock.now())[:19] + "Z"
        body = nodes.condition(held, why, at)
        await self._api.call("PATCH", f"{NODES}/{name}/status", body, kind=STRATEGIC)

    async def close(self) -> None:
        """End the watch and let go of the connections."""
        await self._mirror.close()
        await self._api.close()
