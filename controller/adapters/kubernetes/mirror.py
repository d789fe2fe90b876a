"""All node objects, kept by one list and a watch that goes on where it was.

A watch ends all the time: by its time, by a broken connection (it goes on from the last ``resourceVersion``), or with
410 Gone, when the server has forgotten that version: then everything is listed anew.
"""

import asyncio
from http import HTTPStatus

from controller.adapters.kubernetes.api import Api, Body, Failure, told
from vocab.errors import CorralError, Unreachable
from wire.backoff import delay_s

NODES = "/api/v1/nodes"
PAGE = 500
WATCH_S = 240.0  # the server ends it then; a load balancer would after five minutes
SILENCE_S = WATCH_S + 30.0


class Mirror:
    """The nodes, by name, as of ``version``."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._task: asyncio.Task[None] | None = None
        self._failed: CorralError | None = None
        self.nodes: dict[str, Body] = {}
        self.version = ""
        self.lists = 0

    async def look(self) -> dict[str, Body]:
        """The nodes. Raises Unreachable or Refused if they are not known, or the watch cannot be had."""
        if self._task is None or self._task.done():  # an odd event has ended it, or it was closed
            await self._list()
            self._task = asyncio.create_task(self._follow(), name="kubernetes-watch")
        if self._failed is not None:
            raise self._failed
        return self.nodes

    async def _list(self) -> None:
        found: dict[str, Body] = {}
        more = ""
        while True:
            query = {"limit": str(PAGE), **({"continue": more} if more else {})}
            try:
                page = await self._api.call("GET", NODES, **query)
            except Failure as failure:
                raise told(failure, "list its nodes") from failure
            found |= {node["metadata"]["name"]: node for node in page.get("items", ())}
            more = page["metadata"].get("continue", "")
            if not more:
                break
        self.nodes, self.version = found, page["metadata"]["resourceVersion"]
        self.lists += 1

    async def _follow(self) -> None:
        """Watch until cancelled; what fails is told to who looks, and tried again."""
        attempt = 0
        while True:
            try:
                if not self.version:
                    await self._list()
                await self._watch()
            except CorralError as error:
                attempt += 1
                self._failed = error
                await asyncio.sleep(delay_s(attempt, "kubernetes"))
            else:
                attempt = 0

    async def _watch(self) -> None:
        query = {"resourceVersion": self.version, "allowWatchBookmarks": "true", "timeoutSeconds": int(WATCH_S)}
        try:
            async for event in self._api.watch(NODES, SILENCE_S, **query):
                self._failed = None
                if not self._take(event):
                    return
        except Failure as failure:
            if failure.status != HTTPStatus.GONE:
                raise told(failure, "watch its nodes") from failure
            self.version = ""
        self._failed = None

    def _take(self, event: Body) -> bool:
        """Whether the watch goes on."""
        node, kind = event["object"], event["type"]
        if kind == "ERROR":
            if node.get("code") != HTTPStatus.GONE:
                raise Unreachable(f"kubernetes ended the watch: {node.get('message')}")
            self.version = ""
            return False
        self.version = node["metadata"]["resourceVersion"]
        if kind == "DELETED":
            self.nodes.pop(node["metadata"]["name"], None)
        elif kind != "BOOKMARK":
            self.nodes[node["metadata"]["name"]] = node
        return True

    def take(self, node: Body) -> None:
        """What an answer to our own patch says; the watch will say it, too."""
        self.nodes[node["metadata"]["name"]] = node

    async def close(self) -> None:
        """End the watch."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
