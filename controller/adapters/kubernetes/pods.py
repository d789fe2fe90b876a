"""Pods of a node: which of them count as its work, and how one is asked to go. Eviction only, never a deletion."""

from http import HTTPStatus

from controller.adapters.kubernetes.api import Api, Body, Failure, told
from vocab.errors import Refused, Unreachable

PODS = "/api/v1/pods"
MIRROR = "kubernetes.io/config.mirror"
ENDED = frozenset({"Succeeded", "Failed"})


async def on(api: Api, node: str) -> list[Body]:
    """All pods of a node. Raises Unreachable or Refused."""
    try:
        return list((await api.call("GET", PODS, fieldSelector=f"spec.nodeName={node}")).get("items", ()))
    except Failure as failure:
        raise told(failure, "list its pods") from failure


def is_work(pod: Body) -> bool:
    """Whether somebody's work is in it: not of a DaemonSet, not static, not over."""
    return not (_stays(pod) or pod.get("status", {}).get("phase") in ENDED)


def _stays(pod: Body) -> bool:
    meta = pod["metadata"]
    owners = {owner.get("kind") for owner in meta.get("ownerReferences") or ()}
    return "DaemonSet" in owners or MIRROR in (meta.get("annotations") or {})


def named(pods: list[Body], name: str) -> Body | None:
    """The pod with this UID or name; None if it has gone. Raises Refused if a name is not enough."""
    found = [pod for pod in pods if name in {pod["metadata"]["uid"], pod["metadata"]["name"]}]
    if len(found) > 1:
        spaces = ", ".join(sorted(pod["metadata"]["namespace"] for pod in found))
        raise Refused(f"pods of the name {name} are in {spaces}: a person must say which to evict")
    return found[0] if found else None


async def evict(api: Api, pod: Body) -> None:
    """Ask for its end, if its disruption budget allows it now. Raises Unreachable (later) or Refused."""
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return
    where = f"{meta['namespace']}/{meta['name']}"
    if _stays(pod):
        raise Refused(f"pod {where} is of a DaemonSet or static and would come back: a person must stop it")
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    try:
        await api.call("POST", path, body)
    except Failure as failure:
        if failure.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise Unreachable(f"pod {where} may not go yet: {failure}") from failure
        if failure.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:  # it, or this life of it, has gone
            raise told(failure, f"evict pod {where}") from failure
