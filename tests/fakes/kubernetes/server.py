"""A Kubernetes API server in one process: as much of it as Corral and ``kubectl`` cordon and drain use.

What it does like a real one: every write raises ``resourceVersion``; a write under an old one is 409; lists come in
pages; a watch begins after a version, sends bookmarks, and is 410 for one that is compacted; an eviction that a
PodDisruptionBudget forbids is 429, one for another life of the pod 409; ``null`` in a merge patch removes, a strategic
patch merges conditions by type and taints by key. ``deleted`` keeps what was deleted, not evicted.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

Body = dict[str, Any]
MERGE_KEYS = {"conditions": "type", "taints": "key"}
CLUSTERED = {"nodes": "Node", "resourceslices": "ResourceSlice", "devicetaintrules": "DeviceTaintRule"}
NAMESPACED = {"pods": "Pod", "poddisruptionbudgets": "PodDisruptionBudget"}
GROUPS = {
    "nodes": "v1", "pods": "v1", "poddisruptionbudgets": "policy/v1",
    "resourceslices": "resource.k8s.io/v1", "devicetaintrules": "resource.k8s.io/v1beta2",
}  # fmt: skip


class Fault(Exception):
    """An answer other than 2xx."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self.body = {**status, "code": code, "reason": reason, "message": message}


class FakeKubernetes:
    """Its objects are in ``objects`` by resource, then by (namespace, name)."""

    def __init__(self, *, dra: bool = False, kubelet: bool = True) -> None:
        self.objects: dict[str, dict[tuple[str, str], Body]] = {name: {} for name in GROUPS}
        self.version = 100
        self.compacted = 0
        self.history: list[tuple[int, str, str, Body]] = []
        self.deleted: list[str] = []
        self.denied: set[str] = set()  # verbs that are 403
        self.conflicts = 0  # writes of nodes that are 409 although nothing has changed
        self.evictions: list[str] = []
        self.watches = 0
        self.down = False
        self.kubelet = kubelet  # an evicted pod goes at once
        self.resources = {name for name in GROUPS if dra or "resource.k8s.io" not in GROUPS[name]}
        self._moved = asyncio.Condition()
        self._drop = asyncio.Event()

    # -- writes ---------------------------------------------------------------------------------------

    async def write(self, resource: str, kind: str, body: Body) -> Body:
        """Store an object (ADDED, MODIFIED) or take it away (DELETED), and tell watchers."""
        self.version += 1
        meta = body["metadata"]
        meta["resourceVersion"] = str(self.version)
        key = meta.get("namespace", ""), meta["name"]
        if kind == "DELETED":
            self.objects[resource].pop(key, None)
        else:
            self.objects[resource][key] = body
        async with self._moved:
            self.history.append((self.version, resource, kind, json.loads(json.dumps(body))))
            self._moved.notify_all()
        return body

    async def compact(self) -> None:
        """Forget all versions so far; and end the watches, so that they come again."""
        self.version += 1
        self.compacted = self.version
        await self.drop_watches()

    async def drop_watches(self) -> None:
        """Break every open watch."""
        self._drop.set()
        async with self._moved:
            self._moved.notify_all()
        await asyncio.sleep(0)
        self._drop = asyncio.Event()

    async def create(self, resource: str, namespace: str, body: Body) -> Body:
        meta = body["metadata"]
        if namespace:
            meta["namespace"] = namespace
        if (namespace, meta["name"]) in self.objects[resource]:
            raise Fault(409, "AlreadyExists", f'{resource} "{meta["name"]}" already exists')
        meta.setdefault("uid", str(uuid.uuid4()))
        kinds = CLUSTERED | NAMESPACED
        head = {"apiVersion": GROUPS[resource], "kind": kinds[resource], "spec": {}, "status": {}}
        return await self.write(resource, "ADDED", {**head, **body})

    async def patch(self, resource: str, namespace: str, name: str, patch: Body, *, strategic: bool) -> Body:
        known = self.find(resource, namespace, name)
        wanted = patch.get("metadata", {}).get("resourceVersion")
        stale = wanted is not None and wanted != known["metadata"]["resourceVersion"]
        if stale or (wanted is not None and self.conflicts > 0):
            self.conflicts -= not stale
            await self.write(resource, "MODIFIED", known)
            raise Fault(
                409, "Conflict", f'the object "{name}" has been modified; please apply your changes to the latest'
            )
        return await self.write(resource, "MODIFIED", merged(known, patch, strategic=strategic))

    async def evict(self, namespace: str, name: str, body: Body) -> Body:
        pod = self.find("pods", namespace, name)
        meta, labels = pod["metadata"], pod["metadata"].get("labels", {})
        wanted = body.get("deleteOptions", {}).get("preconditions", {}).get("uid")
        if wanted not in {None, meta["uid"]}:
            raise Fault(409, "Conflict", "the UID in the precondition does not match the UID in record")
        for budget in self.objects["poddisruptionbudgets"].values():
            picked = budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
            if picked and budget["metadata"]["namespace"] == namespace:
                text = "Cannot evict pod as it would violate the pod's disruption budget."
                raise Fault(429, "TooManyRequests", text)
        self.evictions.append(name)
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        await self.write("pods", "DELETED" if self.kubelet else "MODIFIED", pod)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}

    def find(self, resource: str, namespace: str, name: str) -> Body:
        try:
            return json.loads(json.dumps(self.objects[resource][namespace, name]))  # type: ignore[no-any-return]
        except KeyError:
            raise Fault(404, "NotFound", f'{resource} "{name}" not found') from None

    # -- the door -------------------------------------------------------------------------------------

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Every request, by the parts of its path."""
        if self.down:
            raise web.HTTPServiceUnavailable
        try:
            if request.method in self.denied:
                raise Fault(403, "Forbidden", f"user cannot {request.method.lower()} resource")
            parts = [part for part in request.path.split("/") if part]
            if len(parts) < (3 if parts[0] == "api" else 4):
                return web.json_response(self.discovery(parts))
            return await self._object(request, parts[2:] if parts[0] == "api" else parts[3:])
        except Fault as fault:
            headers = {"Retry-After": "10"} if fault.body["code"] == 429 else {}
            return web.json_response(fault.body, status=fault.body["code"], headers=headers)

    def discovery(self, parts: list[str]) -> Body:
        if parts == ["version"]:
            return {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        found: dict[str, set[str]] = {}
        for name in self.resources:
            group, _, version = GROUPS[name].rpartition("/")
            found.setdefault(group, set()).add(version)
        groups = [group for group in sorted(found) if group]
        if parts == ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g, found[g]) for g in groups]}
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in groups:
            return _group(parts[1], found[parts[1]])
        version = "/".join(parts[1:])
        named = [name for name in self.resources if GROUPS[name] == version]
        if not named:
            raise Fault(404, "NotFound", "the server could not find the requested resource")
        listed = [_resource(name) for name in named]
        if "pods" in named:
            listed.append({"name": "pods/eviction", "namespaced": True, "kind": "Eviction", "group": "policy",
                           "version": "v1", "verbs": ["create"], "singularName": ""})  # fmt: skip
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": listed}

    async def _object(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        resource, name, sub = (*parts, "", "")[:3]
        if resource not in self.resources:
            raise Fault(404, "NotFound", "the server could not find the requested resource")
        body = await request.json() if request.can_read_body and request.method != "GET" else {}
        match request.method, bool(name), sub:
            case "GET", False, _ if request.query.get("watch") in {"true", "1"}:
                return await self._watch(request, resource)
            case "GET", False, _:
                return web.json_response(self._list(request, resource, namespace))
            case "GET", True, _:
                return web.json_response(self.find(resource, namespace, name))
            case "POST", True, "eviction":
                return web.json_response(await self.evict(namespace, name, body), status=201)
            case "POST", False, _:
                return web.json_response(await self.create(resource, namespace, body), status=201)
            case "PATCH", True, _:
                strategic = "strategic" in request.content_type
                return web.json_response(await self.patch(resource, namespace, name, body, strategic=strategic))
            case "DELETE", True, _:
                gone = self.find(resource, namespace, name)
                self.deleted.append(f"{resource}/{name}")
                return web.json_response(await self.write(resource, "DELETED", gone))
        raise Fault(405, "MethodNotAllowed", "the server does not allow this method")

    def _list(self, request: web.Request, resource: str, namespace: str) -> Body:
        found = [body for (space, _), body in sorted(self.objects[resource].items()) if namespace in {"", space}]
        for pair in filter(None, request.query.get("fieldSelector", "").split(",")):
            field, _, value = pair.partition("=")
            found = [body for body in found if _field(body, field) == value.lstrip("=")]
        for pair in filter(None, request.query.get("labelSelector", "").split(",")):
            key, _, value = pair.partition("=")
            found = [body for body in found if body["metadata"].get("labels", {}).get(key) == value]
        start, limit = int(request.query.get("continue") or 0), int(request.query.get("limit") or 0) or len(found)
        meta = {"resourceVersion": str(self.version)}
        if start + limit < len(found):
            meta["continue"] = str(start + limit)
        kinds = CLUSTERED | NAMESPACED
        head = {"kind": f"{kinds[resource]}List", "apiVersion": GROUPS[resource], "metadata": meta}
        return {**head, "items": found[start : start + limit]}

    async def _watch(self, request: web.Request, resource: str) -> web.StreamResponse:
        after = int(request.query.get("resourceVersion") or 0)
        if after < self.compacted:
            raise Fault(410, "Expired", f"too old resource version: {after} ({self.compacted})")
        self.watches += 1
        dropped = self._drop
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        async for event in self._events(resource, after, dropped):
            await response.write(json.dumps(event).encode() + b"\n")
        return response

    async def _events(self, resource: str, after: int, dropped: asyncio.Event) -> AsyncIterator[Body]:
        while True:
            until = self.version
            news = [one for one in self.history if after < one[0] <= until]
            for _, about, kind, body in news:
                if about == resource:
                    yield {"type": kind, "object": body}
            after = until
            if news:
                kinds = CLUSTERED | NAMESPACED
                mark = {"kind": kinds[resource], "metadata": {"resourceVersion": str(after)}}
                yield {"type": "BOOKMARK", "object": mark}
            async with self._moved:
                while not dropped.is_set() and self.version <= after:
                    await self._moved.wait()
            if dropped.is_set():
                return

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Its address."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await self.drop_watches()
            await runner.cleanup()


def merged(known: Body, patch: Body, *, strategic: bool) -> Body:
    """RFC 7386, or as Kubernetes merges lists that have a key."""
    found = dict(known)
    for name, value in patch.items():
        key = MERGE_KEYS.get(name) if strategic else None
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            found[name] = merged(found.get(name) or {}, value, strategic=strategic)
        elif key is not None:
            kept = {one[key]: one for one in found.get(name) or []}
            for one in value:
                kept[one[key]] = {**kept.get(one[key], {}), **one}
                if one.get("$patch") == "delete":
                    del kept[one[key]]
            found[name] = list(kept.values())
        elif not name.startswith("$"):
            found[name] = value
    return found


def _field(body: Body, path: str) -> str:
    found: Any = body
    for part in path.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return str(found)


def _group(name: str, versions: set[str]) -> Body:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in sorted(versions)]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource(name: str) -> Body:
    kinds, verbs = CLUSTERED | NAMESPACED, ["get", "list", "watch", "create", "patch", "delete", "update"]
    return {
        "name": name, "singularName": kinds[name].lower(), "namespaced": name in NAMESPACED, "kind": kinds[name],
        "verbs": verbs,
    }  # fmt: skip


def write_kubeconfig(path: Path, server: str) -> Path:
    """A kubeconfig for an address without TLS."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": server}}],
        "users": [{"name": "corral", "user": {"token": "not-a-secret"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "corral"}}],
        "current-context": "fake",
    }
    path.write_text(json.dumps(config))
    return path
