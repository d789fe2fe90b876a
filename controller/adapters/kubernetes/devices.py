"""Devices of dynamic resource allocation: which GPU is which, and the rules that taint one of them.

``DeviceTaintRule`` came as v1alpha3 in Kubernetes 1.33 and is v1beta2 since 1.36; which version a server has, it says.
"""

from http import HTTPStatus

import msgspec

from controller.adapters.kubernetes.api import Api, Body, Failure, told
from controller.adapters.kubernetes.nodes import HELD

GROUP = "/apis/resource.k8s.io"
SLICES, RULES = "resourceslices", "devicetaintrules"
OWNED = {"app.kubernetes.io/managed-by": "corral"}
SELECTOR = "app.kubernetes.io/managed-by=corral"


class Device(msgspec.Struct, frozen=True):
    """A GPU as its DRA driver publishes it."""

    driver: str
    pool: str
    name: str


class Devices:
    """The GPUs of the cluster that can be tainted, by UUID."""

    def __init__(self, api: Api, driver: str) -> None:
        self._api = api
        self._driver = driver
        self._paths: dict[str, str] | None = None  # of what the server has
        self.known: dict[str, Device] = {}
        self.nodes: dict[str, set[str]] = {}  # node -> UUIDs
        self.tainted: set[str] = set()

    async def look(self) -> None:
        """Read everything anew. Raises Unreachable or Refused."""
        try:
            paths = await self._found()
            if SLICES not in paths or RULES not in paths:
                self.known, self.nodes, self.tainted = {}, {}, set()
                return
            slices = await self._api.call("GET", paths[SLICES])
            rules = await self._api.call("GET", paths[RULES], labelSelector=SELECTOR)
        except Failure as failure:
            self._paths = None
            raise told(failure, "list its devices") from failure
        self.known, self.nodes = {}, {}
        for each in slices.get("items", ()):
            self._read(each["spec"])
        self.tainted = {rule["metadata"]["annotations"][HELD] for rule in rules.get("items", ()) if _is_whole(rule)}

    def _read(self, spec: Body) -> None:
        if spec.get("driver") != self._driver:
            return
        for device in spec.get("devices") or ():
            facts = device.get("attributes") or (device.get("basic") or {}).get("attributes") or {}
            uuid = (facts.get("uuid") or {}).get("string")
            if uuid:
                self.known[uuid] = Device(spec["driver"], spec["pool"]["name"], device["name"])
                self.nodes.setdefault(spec.get("nodeName", ""), set()).add(uuid)

    async def _found(self) -> dict[str, str]:
        """Where the server has each resource, in its newest version; empty if it has none."""
        if self._paths is None:
            found: dict[str, str] = {}
            try:
                group = await self._api.call("GET", GROUP)
                for version in group.get("versions", ()):
                    listed = await self._api.call("GET", f"{GROUP}/{version['version']}")
                    for each in listed.get("resources", ()):
                        found.setdefault(each["name"], f"{GROUP}/{version['version']}/{each['name']}")
            except Failure as failure:
                if failure.status != HTTPStatus.NOT_FOUND:
                    raise
            self._paths = found
        return self._paths

    async def taint(self, gpu: str, hold: str, why: str) -> None:
        """Keep new claims off a GPU; what runs on it goes on. Raises Failure."""
        path, device = (await self._found())[RULES], self.known[gpu]
        rule = {
            "apiVersion": path.removeprefix("/apis/").removesuffix(f"/{RULES}"),
            "kind": "DeviceTaintRule",
            "metadata": {"name": _name(gpu), "labels": OWNED, "annotations": {HELD: gpu, "corral/why": why}},
            "spec": {
                "deviceSelector": {"driver": device.driver, "pool": device.pool, "device": device.name},
                "taint": {"key": HELD, "value": hold, "effect": "NoSchedule"},
            },
        }
        try:
            await self._api.call("POST", path, rule)
        except Failure as failure:
            if failure.status != HTTPStatus.CONFLICT:  # it stands already
                raise

    async def free(self, gpu: str) -> None:
        """Take our rule away. Raises Failure."""
        try:
            await self._api.call("DELETE", f"{(await self._found())[RULES]}/{_name(gpu)}")
        except Failure as failure:
            if failure.status != HTTPStatus.NOT_FOUND:
                raise


def _is_whole(rule: Body) -> bool:
    return HELD in (rule["metadata"].get("annotations") or {}) and rule["spec"]["taint"]["key"] == HELD


def _name(gpu: str) -> str:
    return f"corral-{gpu.lower()}"
