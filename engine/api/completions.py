"""Where a request for text becomes its answer: /v1/chat/completions and /v1/completions, /tokenize and /detokenize."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from aiohttp import web

from engine.api.answer import Piece
from engine.api.failures import INVALID, error_body
from engine.api.gate import Unavailable
from engine.api.grammar import Grammars, too_slow
from engine.api.replies import DONE, ChatForm, Form, event
from engine.api.requests import (
    BadRequest,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    TokenizeRequest,
    Wish,
    decode,
)
from engine.api.service import Service
from engine.api.wishes import check_length, check_prompt, check_tokens, choices_of, messages_of, prompts_of, shape_of
from engine.core.sequence import Finish
from wire.server import reply

if TYPE_CHECKING:
    from engine.loading import Loaded

PANIC = "x-corral-panic"
CLIENT = "x-corral-client"  # who asks, for fair turns; else the body's ``user``

Pieces = AsyncGenerator[tuple[int, Piece], None]
PromptsOf = Callable[[Any, "Loaded"], Awaitable[list[list[int]]]]

_BROKEN = frozenset({Finish.ABORT, Finish.ERROR})


class Completions:
    """The handlers, one a route."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._grammars: Grammars | None = None

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions."""
        return await self._serve(request, ChatRequest, _chat_prompts)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/completions."""
        return await self._serve(request, CompletionRequest, _text_prompts)

    async def tokenize(self, request: web.Request) -> web.Response:
        """POST /tokenize, in vLLM's form. It takes no turn of the step loop."""
        loaded = self._model()
        wish: TokenizeRequest = decode(await request.read(), TokenizeRequest)
        self._check_name(wish.model)
        if (wish.prompt is None) is (wish.messages is None):
            raise BadRequest("send a prompt or messages, and not both", param="prompt")
        if wish.messages is None:
            text, special = wish.prompt or "", wish.add_special_tokens is not False
        else:
            text, special = _rendered(wish, loaded), bool(wish.add_special_tokens)
        tokens = await _encode(loaded, text, special=special)
        names = [loaded.tokenizer.written(token) for token in tokens] if wish.return_token_strs else None
        return reply({"count": len(tokens), "max_model_len": loaded.max_len, "tokens": tokens, "token_strs": names})

    async def detokenize(self, request: web.Request) -> web.Response:
        """POST /detokenize."""
        loaded = self._model()
        wish: DetokenizeRequest = decode(await request.read(), DetokenizeRequest)
        self._check_name(wish.model)
        tokens = check_tokens(wish.tokens, loaded, "tokens")
        return reply({"prompt": await asyncio.to_thread(loaded.tokenizer.decode, tokens)})

    def _model(self) -> "Loaded":
        if self._service.loaded is None:
            raise Unavailable("loading")
        return self._service.loaded

    def _check_name(self, name: str | None) -> None:
        served = self._service.config.served_name
        if name not in (None, served):
            message = f"the model {name!r} is not served here, only {served!r}"
            raise BadRequest(message, param="model", code="model_not_found", status=404)

    async def _serve(self, request: web.Request, kind: type[Wish], prompts_of: PromptsOf) -> web.StreamResponse:
        """The way of every request: the gate, the body, the prompts, what must be followed, the answer."""
        with self._service.entered(panic=request.headers.get(PANIC) == "1") as loaded:
            wish: Wish = decode(await request.read(), kind)
            self._check_name(wish.model)
            shape = shape_of(wish)
            given = [wish.resume.prompt_token_ids] if wish.resume else await prompts_of(wish, loaded)
            prompts = [check_prompt(prompt, loaded) for prompt in given]
            grammar = await self._compiler(loaded).compile(shape) if shape else None
            choices = choices_of(wish, prompts, loaded, request.headers.get(CLIENT, ""), grammar)
            if isinstance(wish, ChatRequest):
                reads_calls = loaded.template is not None and loaded.template.writes_tool_calls
                form: Form = ChatForm(wish, choices, loaded.tokenizer, reads_calls=reads_calls)
            else:
                form = Form(wish, choices, loaded.tokenizer)
            async with aclosing(self._service.answer(choices)) as pieces:
                if wish.stream:
                    return await self._stream(request, form, pieces)
                return await self._whole(form, pieces, len(choices))

    def _compiler(self, loaded: "Loaded") -> Grammars:
        self._grammars = self._grammars or Grammars(loaded)
        return self._grammars

    async def _whole(self, form: Form, pieces: Pieces, count: int) -> web.Response:
        collected: list[list[Piece]] = [[] for _ in range(count)]
        async for number, piece in pieces:
            collected[number].append(piece)
        finishes = [parts[-1].finish for parts in collected]
        worst = next((finish for finish in finishes if finish in _BROKEN), finishes[0])
        assert worst is not None, "the last piece says how the answer ended"
        if any(parts[-1].refused for parts in collected):
            raise too_slow()
        self._service.booked(worst)
        _refuse_broken(worst)
        return reply(form.whole(collected))

    async def _stream(self, request: web.Request, form: Form, pieces: Pieces) -> web.StreamResponse:
        """The head goes out with the first token: until then a failure can still be answered with its own status."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8",
                                               "Cache-Control": "no-store", "X-Accel-Buffering": "no"})  # fmt: skip
        worst = Finish.STOP
        async for number, piece in pieces:
            if piece.refused:
                return await _refused(response)
            if piece.finish in _BROKEN:
                worst = piece.finish
            if not response.prepared and not piece.known:
                if piece.finish in _BROKEN and not piece.token_ids:
                    self._service.booked(worst)
                    _refuse_broken(worst)
                await response.prepare(request)
            if piece.finish is Finish.ERROR:
                self._service.booked(worst)
                await response.write(event(error_body(str(Unavailable("failed")), "unavailable", code="failed")))
                return response  # without [DONE]: it is not done
            chunk = form.chunk(number, piece)
            if chunk is not None:
                await _prepared(response, request)
                await response.write(event(chunk))
        await _prepared(response, request)
        await response.write((event(form.usage_chunk()) if form.ends_with_usage else b"") + DONE)
        self._service.booked(worst)
        await response.write_eof()
        return response


async def _prepared(response: web.StreamResponse, request: web.Request) -> None:
    if not response.prepared:
        await response.prepare(request)


async def _refused(response: web.StreamResponse) -> web.StreamResponse:
    """The end of a stream whose request turned out to be wrong. Raises BadRequest if nothing of it was sent yet."""
    error = too_slow()
    if not response.prepared:
        raise error
    await response.write(event(error_body(str(error), INVALID, param=error.param, code=error.code)))
    return response


def _refuse_broken(finish: Finish) -> None:
    """Raise Unavailable for an answer that ended by no fault of its request: it can be asked for elsewhere."""
    if finish in _BROKEN:
        raise Unavailable("cut_off" if finish is Finish.ABORT else "failed")


async def _chat_prompts(wish: ChatRequest, loaded: "Loaded") -> list[list[int]]:
    return [await _encode(loaded, _rendered(wish, loaded), special=False)]


def _rendered(wish: ChatRequest | TokenizeRequest, loaded: "Loaded") -> str:
    """A chat as the model's template writes it. Raises BadRequest if there is none or it would be too long."""
    if loaded.template is None:
        raise BadRequest("this model has no chat template; use /v1/completions", code="no_chat_template")
    messages = messages_of(wish.messages or [])
    check_length("".join(message["content"] for message in messages), loaded)
    hidden = isinstance(wish, ChatRequest) and wish.tool_choice == "none"
    return loaded.template.render(
        messages,
        tools=None if hidden else wish.tools,
        ask=wish.add_generation_prompt is not False,
        more=wish.chat_template_kwargs,
    )


async def _text_prompts(wish: CompletionRequest, loaded: "Loaded") -> list[list[int]]:
    return [
        await _encode(loaded, prompt, special=True) if isinstance(prompt, str) else prompt
        for prompt in prompts_of(wish)
    ]


async def _encode(loaded: "Loaded", text: str, *, special: bool) -> list[int]:
    check_length(text, loaded)
    return await asyncio.to_thread(loaded.tokenizer.encode, text, special=special)
