"""The HTTP face of a replica: the OpenAI API, health and readiness, fence and drain."""

import importlib.metadata
import time
from typing import Annotated

import msgspec
from aiohttp import web

from engine.api.completions import Completions
from engine.api.failures import requests_of_others, whatever_else
from engine.api.requests import BadRequest
from engine.api.service import Service
from engine.health.outcome import Run
from wire.server import decode as decode_body
from wire.server import make_app, reply

CANARY_S = 120.0  # a run is seconds; behind the steps of a full batch it takes longer


class DrainOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST /drain. ``ttl_s`` counts with ``exit`` only: a fence stands until it is lifted."""

    exit: bool = False
    ttl_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    reason: str = ""


def application(service: Service, token: str | None = None) -> web.Application:
    """All routes of one replica."""
    app = make_app(ready=service.gate.ready, healthy=service.healthy, metrics=service.metrics, token=token)
    app.middlewares.insert(0, whatever_else)
    app.middlewares.append(requests_of_others)
    routes, texts = Routes(service), Completions(service)
    app.router.add_get("/health", routes.health)
    app.router.add_get("/ready", routes.ready)
    app.router.add_get("/version", routes.version)
    app.router.add_get("/v1/models", routes.models)
    app.router.add_get("/v1/models/{name:.+}", routes.model)
    app.router.add_post("/v1/chat/completions", texts.chat)
    app.router.add_post("/v1/completions", texts.completions)
    app.router.add_post("/tokenize", texts.tokenize)
    app.router.add_post("/detokenize", texts.detokenize)
    app.router.add_post("/drain", routes.drain)
    app.router.add_delete("/drain", routes.lift)
    app.router.add_get("/canary", routes.canary)
    app.router.add_post("/canary", routes.run_canary)
    return app


def _told(run: Run | None, status: int = 200) -> web.Response:
    """A run of the canary; ``outcome`` is null where there was none."""
    told = [] if run is None else [{"outcome": one.outcome.value, "text": one.text} for one in run.told]
    return reply(
        {
            "outcome": run.outcome.value if run is not None else None,
            "text": run.text if run is not None else "",
            "seconds": run.seconds if run is not None else None,
            "checks": told,
        },
        status,
    )


class Routes:
    """The handlers, one a route."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._created = int(time.time())

    async def health(self, _: web.Request) -> web.Response:
        """200 while the step loop lives."""
        ok, why = self._service.healthy()
        return reply({"status": why}, 200 if ok else 503)

    async def ready(self, _: web.Request) -> web.Response:
        """200 while new requests are admitted. ``resumes``: whose broken answers it can go on with (see wishes)."""
        ok, why = self._service.gate.ready()
        loaded = self._service.loaded
        return reply({"ready": ok, "reason": why, "resumes": loaded.fingerprint if loaded else ""}, 200 if ok else 503)

    async def version(self, _: web.Request) -> web.Response:
        """The version of Corral, in vLLM's form."""
        return reply({"version": importlib.metadata.version("corral")})

    async def models(self, _: web.Request) -> web.Response:
        """The one model, under the name that clients send."""
        return reply({"object": "list", "data": [self._card()]})

    async def model(self, request: web.Request) -> web.Response:
        """The one model, if this is its name."""
        name, served = request.match_info["name"], self._service.config.served_name
        if name != served:
            message = f"the model {name!r} is not served here, only {served!r}"
            raise BadRequest(message, param="model", code="model_not_found", status=404)
        return reply(self._card())

    def _card(self) -> dict[str, object]:
        loaded = self._service.loaded
        return {
            "id": self._service.config.served_name,
            "object": "model",
            "created": self._created,
            "owned_by": "corral",
            "root": self._service.config.model,
            "max_model_len": loaded.max_len if loaded else None,
        }

    async def drain(self, request: web.Request) -> web.Response:
        """Fence, or drain and exit."""
        order: DrainOrder = decode_body(await request.read() or b"{}", DrainOrder)
        ttl_s = self._service.config.drain_s if order.ttl_s is None else order.ttl_s
        self._service.drain(leave=order.exit, ttl_s=ttl_s, reason=order.reason)
        return self._stand()

    async def lift(self, _: web.Request) -> web.Response:
        """Admit again."""
        self._service.lift()
        return self._stand()

    async def canary(self, _: web.Request) -> web.Response:
        """What the last run of the canary found."""
        loaded = self._service.loaded
        last = loaded.canary.last if loaded is not None and loaded.canary is not None else None
        return _told(last)

    async def run_canary(self, _: web.Request) -> web.Response:
        """Run the canary now, between the steps of what runs, and tell; 504 if it did not end in time."""
        run = await self._service.check(CANARY_S)
        return _told(run, 504 if run is None else 200)

    def _stand(self) -> web.Response:
        gate = self._service.gate
        ready, reason = gate.ready()
        return reply(
            {
                "admitting": ready,
                "reason": reason,
                "draining": gate.exit_at is not None,
                "open_requests": gate.open_requests,
                "exit_in_s": self._service.exit_in_s(),
            }
        )
