"""What was taken of faults, for the controller: a list, and its pieces one by one. A quarantine has it taken."""

import re

from aiohttp import web

from agent.executor.evidence import Evidence
from agent.roothelper.requests import ORDER
from vocab.messages import EvidenceList
from wire.server import reply


class EvidenceRoutes:
    """``/api/v1/evidence/ORDER``: POST has it taken if it is not there, GET lists it, ``…/NAME`` is a piece."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def add_to(self, app: web.Application) -> None:
        """Serve them."""
        app.router.add_get("/api/v1/evidence/{order}", self._list)
        app.router.add_post("/api/v1/evidence/{order}", self._take)
        app.router.add_get("/api/v1/evidence/{order}/{name}", self._piece)

    async def _list(self, request: web.Request) -> web.Response:
        return self._told(_order(request))

    async def _take(self, request: web.Request) -> web.Response:
        order = _order(request)
        await self._evidence.gather_once(order)
        return self._told(order)

    def _told(self, order: str) -> web.Response:
        files = self._evidence.files(order)
        if not files:
            raise web.HTTPNotFound(reason="nothing was taken for this order, or it is forgotten")
        return reply(EvidenceList(order=order, files=files))

    async def _piece(self, request: web.Request) -> web.StreamResponse:
        path = self._evidence.place(_order(request), request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound(reason="there is no such piece of evidence")
        return web.FileResponse(path, headers={"Content-Type": "application/octet-stream"})


def _order(request: web.Request) -> str:
    order = request.match_info["order"]
    if re.match(ORDER, order) is None:
        raise web.HTTPNotFound(reason="that is no name of an order")
    return order
