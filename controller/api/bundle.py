"""Bundles: of an incident or a GPU, packed while it is sent; and those that were written at a quarantine."""

import asyncio
from collections.abc import Sequence

from aiohttp import web

from controller.api.route import Call, Route, Run, not_found
from controller.evidence.parts import Missing, Parts
from controller.evidence.shelf import Bundle, Shelf
from controller.evidence.tar import packed
from controller.store import read
from controller.store.change import Change
from controller.store.store import Store
from vocab.lines import IncidentLine

MEDIA = "application/x-tar"


class Bundles:
    """Four routes."""

    def __init__(self, store: Store, parts: Parts, shelf: Shelf) -> None:
        self._store = store
        self._parts = parts
        self._shelf = shelf

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            _row("incidents/{id}/bundle", "incident_bundle", "All evidence of one incident, as a tar", self.incident),
            _row("gpus/{uuid}/bundle", "gpu_bundle", "All evidence of one GPU, as a tar", self.gpu),
            Route(
                method="GET", path="/api/v1/bundles", name="bundles", answer=list[Bundle], run=self.listed,
                summary="The bundles that were written at a quarantine by this controller, newest first",
            ),
            _row("bundles/{id}", "bundle", "A bundle that was written at a quarantine, as a tar", self.written),
        ]  # fmt: skip

    async def listed(self, _: Call) -> list[Bundle]:
        """Those on this controller's disk."""
        return await asyncio.to_thread(self._shelf.listed)

    async def written(self, call: Call) -> web.StreamResponse:
        """One of them."""
        name = call.part("id")
        found = await asyncio.to_thread(self._shelf.find, name)
        if found is None:
            raise not_found("bundle", name, "/api/v1/bundles")
        return web.FileResponse(found[1], headers=_headers(name))

    async def incident(self, call: Call) -> web.StreamResponse:
        """Of an incident."""
        name = call.part("id")
        async with self._store.reading() as connection:
            if not isinstance(await read.standing_line(connection, "incident", name), IncidentLine):
                raise not_found("incident", name, "/api/v1/incidents")
            changes = await read.incident_lines(connection, name)
        return await self._send(call.request, name, changes)

    async def gpu(self, call: Call) -> web.StreamResponse:
        """Of a GPU, and all its incidents."""
        name = call.part("uuid")
        async with self._store.reading() as connection:
            known = {gpu.uuid for facts in await read.node_facts(connection) for gpu in facts.gpus}
            if name not in known:
                raise not_found("gpu", name, "/api/v1/gpus")
            changes = await read.gpu_lines(connection, name)
        return await self._send(call.request, name, changes)

    async def _send(self, request: web.Request, name: str, changes: Sequence[Change]) -> web.StreamResponse:
        answer, missing = web.StreamResponse(headers=_headers(name)), Missing()
        await answer.prepare(request)
        at = int(max((change.line.at for change in changes), default=0.0))
        async for chunk in packed(name, at, self._parts.of(name, changes, missing), missing.told):
            await answer.write(chunk)
        await answer.write_eof()
        return answer


def _headers(name: str) -> dict[str, str]:
    plain = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    return {"Content-Type": MEDIA, "Content-Disposition": f'attachment; filename="corral-{plain}.tar"'}


def _row(path: str, name: str, summary: str, run: Run) -> Route:
    return Route(
        method="GET", path=f"/api/v1/{path}", name=name, summary=summary, run=run, stream=True, media=MEDIA,
        errors=(404,),
    )  # fmt: skip
