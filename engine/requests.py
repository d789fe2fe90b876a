"""Requests of the OpenAI API as types, and what they mean for a model: prompt, rule of sampling, stops.

What is not supported is refused with a message, never ignored: an answer that silently lacks what was asked for
is worse than none. Fields without influence on the answer (``user``, ``metadata`` and the like) are ignored.
"""

import secrets
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from engine.sequence import Sampling
from vocab.errors import InputError

if TYPE_CHECKING:
    from engine.loading import Loaded

GREEDY_BELOW = 1e-5  # temperatures this small would overflow and mean greedy anyway
COMPLETION_TOKENS = 16  # the OpenAI API's default for completions; a chat may go on to the end of the context


class BadRequest(InputError):
    """A request that this model cannot answer; in the terms of the OpenAI API."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status


class StreamOptions(msgspec.Struct, frozen=True):
    """``stream_options`` of a request."""

    include_usage: bool | None = None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What chat and completion requests have in common. ``null`` means the default everywhere."""

    model: str
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = None
    n: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    presence_penalty: Any = None
    frequency_penalty: Any = None
    repetition_penalty: Any = None
    min_p: Any = None
    min_tokens: Any = None
    logit_bias: Any = None


class Part(msgspec.Struct, frozen=True):
    """One part of a message's content."""

    type: str
    text: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message of a chat."""

    role: str
    content: str | list[Part] | None = None


class ChatRequest(Wish, frozen=True, kw_only=True):
    """POST /v1/chat/completions."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    tools: Any = None
    response_format: Any = None


class CompletionRequest(Wish, frozen=True, kw_only=True):
    """POST /v1/completions."""

    prompt: str | list[str | int]
    best_of: Any = None
    echo: Any = None
    suffix: Any = None


_NEUTRAL: dict[str, tuple[Any, ...]] = {  # values that ask for nothing
    "n": (1,),
    "best_of": (1,),
    "top_logprobs": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "min_tokens": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "response_format": ({"type": "text"},),
    "suffix": ("",),
}


def decode(raw: bytes, kind: type[ChatRequest] | type[CompletionRequest]) -> Any:
    """The body of a request. Raises BadRequest naming the field."""
    try:
        wish = msgspec.json.decode(raw or b"null", type=kind)
    except msgspec.ValidationError as error:
        _, _, place = str(error).partition(" - at `$")
        raise BadRequest(f"the request is wrong: {error}", param=place.strip(".`") or None) from error
    except msgspec.DecodeError as error:
        raise BadRequest(f"the request's body is not JSON: {error}") from error
    for name in wish.__struct_fields__:
        value = getattr(wish, name)
        if name in {*_NEUTRAL, "logprobs", "echo"} and not (
            value is None or value is False or value in _NEUTRAL.get(name, ())
        ):
            raise BadRequest(f"{name}: this server does not support {value!r} here; leave it out", param=name)
    return wish


def messages_of(wish: ChatRequest) -> list[dict[str, str]]:
    """The messages as templates take them. Raises BadRequest if one holds more than text."""
    messages = []
    for number, message in enumerate(wish.messages):
        content = message.content or ""
        if isinstance(content, list):
            if any(part.type != "text" for part in content):
                raise BadRequest("only text can be read by this model", param=f"messages[{number}].content")
            content = "".join(part.text for part in content)
        messages.append({"role": message.role, "content": content})
    return messages


def check_length(text: str, loaded: "Loaded") -> None:
    """Refuse a text that cannot fit however it is cut into tokens, before any time is spent on cutting it."""
    least = len(text.encode()) // loaded.tokenizer.longest
    if least >= loaded.max_len:
        raise _too_long(f"at least {least}", loaded)


def _too_long(tokens: str, loaded: "Loaded") -> BadRequest:
    return BadRequest(
        f"this model's context is {loaded.max_len} tokens and the prompt has {tokens}; send a shorter prompt",
        param="prompt",
        code="context_length_exceeded",
    )


def check_prompt(prompt: list[int], loaded: "Loaded") -> list[int]:
    """The prompt, if this model can begin with it. Raises BadRequest."""
    if not prompt:
        raise BadRequest("the prompt is empty; send at least one token", param="prompt")
    if not all(0 <= token < loaded.vocab for token in prompt):
        raise BadRequest(f"the prompt has token ids outside of 0 to {loaded.vocab - 1}", param="prompt")
    if len(prompt) >= loaded.max_len:
        raise _too_long(str(len(prompt)), loaded)
    return prompt


def sampling_of(wish: ChatRequest | CompletionRequest, prompt: list[int], loaded: "Loaded") -> Sampling:
    """The rule of sampling that a request asks for. Raises BadRequest if the answer does not fit behind the prompt."""
    room = loaded.max_len - len(prompt)
    wanted = wish.max_tokens
    if isinstance(wish, ChatRequest):
        wanted = wish.max_completion_tokens or wanted or room
    wanted = wanted or min(COMPLETION_TOKENS, room)
    if wanted > room:
        raise BadRequest(
            f"this model's context is {loaded.max_len} tokens: {len(prompt)} of the prompt leave {room}, not {wanted}; "
            "ask for fewer or send a shorter prompt",
            param="max_tokens",
            code="context_length_exceeded",
        )
    temperature = 1.0 if wish.temperature is None else wish.temperature
    stop_ids = frozenset(wish.stop_token_ids or ())
    return Sampling(
        max_tokens=wanted,
        temperature=temperature if temperature >= GREEDY_BELOW else 0.0,
        top_k=max(0, wish.top_k or 0),
        top_p=1.0 if wish.top_p is None else wish.top_p,
        seed=secrets.randbits(63) if wish.seed is None else wish.seed,
        stop_ids=stop_ids if wish.ignore_eos else stop_ids | loaded.eos_ids,
    )


def stops_of(wish: Wish) -> list[str]:
    """The stop strings of a request. Raises BadRequest for an empty one."""
    stops = [wish.stop] if isinstance(wish.stop, str) else wish.stop or []
    if not all(stops):
        raise BadRequest("a stop string must not be empty", param="stop")
    return stops
