"""The HTTP face of a replica: the OpenAI API, health and readiness, fence and drain."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from aiohttp import web

from engine.answer import Piece
from engine.gate import Unavailable
from engine.replies import DONE, ChatForm, Form, event
from engine.requests import (
    BadRequest,
    ChatRequest,
    CompletionRequest,
    check_length,
    check_prompt,
    decode,
    messages_of,
    sampling_of,
    stops_of,
)
from engine.sequence import Finish
from engine.service import Service
from vocab.errors import InputError
from wire.server import decode as decode_body
from wire.server import make_app, reply

if TYPE_CHECKING:
    from engine.loading import Loaded

log = logging.getLogger(__name__)

PANIC = "x-corral-panic"

Wish = ChatRequest | CompletionRequest


class DrainOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST /drain. ``ttl_s`` counts with ``exit`` only: a fence stands until it is lifted."""

    exit: bool = False
    ttl_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    reason: str = ""


def application(service: Service, token: str | None = None) -> web.Application:
    """All routes of one replica."""
    app = make_app(ready=service.gate.ready, healthy=service.healthy, metrics=service.metrics, token=token)
    app.middlewares.append(openai_errors)
    routes = Routes(service)
    app.router.add_get("/health", routes.health)
    app.router.add_get("/ready", routes.ready)
    app.router.add_get("/v1/models", routes.models)
    app.router.add_post("/v1/chat/completions", routes.chat)
    app.router.add_post("/v1/completions", routes.completions)
    app.router.add_post("/drain", routes.drain)
    app.router.add_delete("/drain", routes.lift)
    return app


def _error(message: str, kind: str, status: int, *, param: str | None = None, code: str | None = None,
           headers: dict[str, str] | None = None) -> web.Response:  # fmt: skip
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return reply(body, status, headers)


@web.middleware
async def openai_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Errors of requests in the form that OpenAI's clients know."""
    try:
        return await handler(request)
    except BadRequest as error:
        return _error(str(error), "invalid_request_error", error.status, param=error.param, code=error.code)
    except InputError as error:
        return _error(str(error), "invalid_request_error", 400)
    except Unavailable as error:
        headers = {"Retry-After": str(error.retry_after_s)}
        return _error(str(error), "unavailable", 503, code=error.code, headers=headers)


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
        """200 while new requests are admitted."""
        ok, why = self._service.gate.ready()
        return reply({"ready": ok, "reason": why}, 200 if ok else 503)

    async def models(self, _: web.Request) -> web.Response:
        """The one model, under the name that clients send."""
        loaded = self._service.loaded
        model = {
            "id": self._service.config.served_name,
            "object": "model",
            "created": self._created,
            "owned_by": "corral",
            "root": self._service.config.model,
            "max_model_len": loaded.max_len if loaded else None,
        }
        return reply({"object": "list", "data": [model]})

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

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions."""

        async def prompt_of(wish: ChatRequest, loaded: "Loaded") -> list[int]:
            if loaded.template is None:
                raise BadRequest("this model has no chat template; use /v1/completions", code="no_chat_template")
            messages = messages_of(wish)
            check_length("".join(message["content"] for message in messages), loaded)
            return await _encode(loaded, loaded.template.render(messages), special=False)

        return await self._serve(request, ChatRequest, ChatForm, prompt_of)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/completions."""

        async def prompt_of(wish: CompletionRequest, loaded: "Loaded") -> list[int]:
            prompt = wish.prompt
            tokens = [] if isinstance(prompt, str) else [part for part in prompt if isinstance(part, int)]
            if not isinstance(prompt, str) and len(tokens) < len(prompt):
                if len(prompt) != 1:
                    raise BadRequest("one prompt a request; send the others on their own", param="prompt")
                prompt = str(prompt[0])
            return await _encode(loaded, prompt, special=True) if isinstance(prompt, str) else tokens

        return await self._serve(request, CompletionRequest, Form, prompt_of)

    async def _serve(self, request: web.Request, kind: type[Any], form_kind: type[Form],
                     prompt_of: Callable[[Any, "Loaded"], Awaitable[list[int]]]) -> web.StreamResponse:  # fmt: skip
        """The way of every request: the gate, the body, the prompt, the answer."""
        with self._service.entered(panic=request.headers.get(PANIC) == "1") as loaded:
            wish: Wish = decode(await request.read(), kind)
            if wish.model != self._service.config.served_name:
                message = f"the model {wish.model!r} is not served here, only {self._service.config.served_name!r}"
                raise BadRequest(message, param="model", code="model_not_found", status=404)
            prompt = check_prompt(await prompt_of(wish, loaded), loaded)
            sampling, stops = sampling_of(wish, prompt, loaded), stops_of(wish)
            form = form_kind(wish.model, prompt, token_ids=bool(wish.return_token_ids))
            async with aclosing(self._service.answer(prompt, sampling, stops)) as pieces:
                if wish.stream:
                    return await self._stream(request, wish, form, pieces)
                return await self._whole(form, pieces)

    async def _whole(self, form: Form, pieces: Any) -> web.Response:
        collected: list[Piece] = []
        async for piece in pieces:
            form.count(piece)
            collected.append(piece)
        finish = collected[-1].finish
        assert finish is not None, "the last piece says how the answer ended"
        self._service.booked(finish)
        _refuse_broken(finish)
        return reply(form.whole(collected))

    async def _stream(self, request: web.Request, wish: Wish, form: Form, pieces: Any) -> web.StreamResponse:
        """The head goes out with the first token: until then a failure can still be answered with its own status."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8",
                                               "Cache-Control": "no-store", "X-Accel-Buffering": "no"})  # fmt: skip
        async for piece in pieces:
            form.count(piece)
            if not response.prepared:
                if piece.finish is not None and not piece.token_ids:
                    self._service.booked(piece.finish)
                    _refuse_broken(piece.finish)
                await response.prepare(request)
            if piece.finish is Finish.ERROR:
                self._service.booked(piece.finish)
                broken = {"message": str(Unavailable("failed")), "type": "unavailable", "code": "failed"}
                await response.write(event({"error": broken}))
                return response  # without [DONE]: it is not done
            if form.wants(piece):
                await response.write(event(form.chunk(piece)))
            if piece.finish is not None:
                usage = wish.stream_options is not None and wish.stream_options.include_usage
                await response.write((event(form.usage_chunk()) if usage else b"") + DONE)
                self._service.booked(piece.finish)
        await response.write_eof()
        return response


def _refuse_broken(finish: Finish) -> None:
    """Raise Unavailable for an answer that ended by no fault of its request: it can be asked for elsewhere."""
    if finish in {Finish.ABORT, Finish.ERROR}:
        raise Unavailable("cut_off" if finish is Finish.ABORT else "failed")


async def _encode(loaded: "Loaded", text: str, *, special: bool) -> list[int]:
    check_length(text, loaded)
    return await asyncio.to_thread(loaded.tokenizer.encode, text, special=special)
