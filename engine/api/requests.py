"""Requests of the OpenAI API, with vLLM's additions, as types.

What is not supported is refused with a message, never ignored: an answer that silently lacks what was asked for
is worse than none. Fields without influence on the answer (``user``, ``metadata`` and the like) are ignored.
``null`` means the default everywhere.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from vocab.errors import InputError

MAX_LOGPROBS = 20  # as vLLM and OpenAI's chats
MAX_CHOICES = 128  # of one request, as OpenAI; the queue sets its own limit

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Logprobs = Annotated[int, Meta(ge=0, le=MAX_LOGPROBS)]


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
    continuous_usage_stats: bool | None = None


class JsonSchema(msgspec.Struct, frozen=True):
    """``response_format.json_schema``; it is always followed strictly."""

    schema: dict[str, Any]
    name: str = ""


class ResponseFormat(msgspec.Struct, frozen=True):
    """``response_format``: text, json_object or json_schema."""

    type: str
    json_schema: JsonSchema | None = None


class Structured(msgspec.Struct, frozen=True):
    """vLLM's ``structured_outputs``: one of these."""

    json: dict[str, Any] | str | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None


class Resume(msgspec.Struct, frozen=True):
    """Where a stream that broke goes on: what its chunks had carried so far, under the id that they had."""

    prompt_token_ids: list[int]
    token_ids: list[int]
    id: str | None = None
    created: int | None = None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What chat and completion requests have in common."""

    model: str
    max_tokens: Positive | None = None
    min_tokens: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=100)] | None = None
    logit_bias: dict[int, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    n: Annotated[int, Meta(ge=1, le=MAX_CHOICES)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    return_token_ids: bool | None = None
    priority: Annotated[int, Meta(ge=-1000, le=1000)] | None = None  # lower goes first
    user: str | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: Structured | None = None
    guided_json: dict[str, Any] | str | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    resume: Resume | None = None
    # refused unless they ask for nothing
    best_of: Any = None
    suffix: Any = None
    bad_words: Any = None
    allowed_token_ids: Any = None
    prompt_logprobs: Any = None
    truncate_prompt_tokens: Any = None
    use_beam_search: Any = None
    skip_special_tokens: Any = None
    continue_final_message: Any = None
    functions: Any = None


class Part(msgspec.Struct, frozen=True):
    """One part of a message's content."""

    type: str
    text: str = ""


class Function(msgspec.Struct, frozen=True):
    """The function of a tool call; ``arguments`` is JSON in a string."""

    name: str
    arguments: str | dict[str, Any] = ""


class ToolCall(msgspec.Struct, frozen=True):
    """A call that the assistant made in an earlier message."""

    function: Function
    id: str | None = None
    type: str = "function"


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a chat."""

    role: str
    content: str | list[Part] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class ChatRequest(Wish, frozen=True, kw_only=True):
    """POST /v1/chat/completions."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    max_completion_tokens: Positive | None = None
    logprobs: bool | None = None
    top_logprobs: Logprobs | None = None


class CompletionRequest(Wish, frozen=True, kw_only=True):
    """POST /v1/completions. A prompt is a text or its token ids; there may be several."""

    prompt: str | list[str | int | list[int]]
    logprobs: Logprobs | None = None
    echo: bool | None = None


class TokenizeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """POST /tokenize: a prompt, or the messages of a chat; in vLLM's form."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[Message], Meta(min_length=1)] | None = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None


class DetokenizeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """POST /detokenize."""

    model: str | None = None
    tokens: list[int]


_NOTHING: dict[str, tuple[Any, ...]] = {  # refused, unless with a value that asks for nothing
    "suffix": ("",),
    "bad_words": ([],),
    "allowed_token_ids": ([],),
    "prompt_logprobs": (),
    "truncate_prompt_tokens": (),
    "use_beam_search": (),
    "continue_final_message": (),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
}


def decode(raw: bytes, kind: Any) -> Any:
    """The body of a request. Raises BadRequest naming the field."""
    try:
        wish = msgspec.json.decode(raw or b"null", type=kind)
    except msgspec.ValidationError as error:
        _, _, place = str(error).partition(" - at `$")
        raise BadRequest(f"the request is wrong: {error}", param=place.strip(".`") or None) from error
    except msgspec.DecodeError as error:
        raise BadRequest(f"the request's body is not JSON: {error}") from error
    if isinstance(wish, Wish):
        _refuse_the_rest(wish)
    return wish


def _refuse_the_rest(wish: Wish) -> None:
    for name, neutral in _NOTHING.items():
        value = getattr(wish, name, None)
        if not (value is None or value is False or value in neutral):
            raise BadRequest(f"{name}: this server does not support {value!r} here; leave it out", param=name)
    if wish.skip_special_tokens is False:
        raise BadRequest("skip_special_tokens: this server never shows them", param="skip_special_tokens")
    if wish.best_of not in (None, wish.n or 1):
        raise BadRequest("best_of: this server gives all it generates; make it equal to n", param="best_of")
