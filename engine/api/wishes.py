"""What a request means for a model: its prompts, the rule of sampling, what ends it, what it must follow."""

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from engine.api.answer import Choice
from engine.api.matcher import Compiled, Shape
from engine.api.requests import BadRequest, ChatRequest, CompletionRequest, Message, Wish
from engine.core.sequence import Sampling

if TYPE_CHECKING:
    from engine.loading import Loaded

GREEDY_BELOW = 1e-5  # temperatures this small would overflow and mean greedy anyway
COMPLETION_TOKENS = 16  # the OpenAI API's default for completions; a chat may go on to the end of the context


def prompts_of(wish: CompletionRequest) -> Sequence[str | list[int]]:
    """The prompts of a completion, each a text or token ids. Raises BadRequest if they are mixed."""
    given = wish.prompt
    if isinstance(given, str):
        return [given]
    if all(isinstance(part, int) for part in given):
        return [[part for part in given if isinstance(part, int)]]
    texts = [part for part in given if not isinstance(part, int)]
    if len(texts) < len(given):
        raise BadRequest("a prompt is a text or token ids, not both", param="prompt")
    return texts


def messages_of(messages: list[Message]) -> list[dict[str, Any]]:
    """The messages as templates take them. Raises BadRequest if one holds more than text."""
    found = []
    for number, message in enumerate(messages):
        content = message.content or ""
        if isinstance(content, list):
            if any(part.type != "text" for part in content):
                raise BadRequest("only text can be read by this model", param=f"messages[{number}].content")
            content = "".join(part.text for part in content)
        plain: dict[str, Any] = {**msgspec.to_builtins(message), "content": content}
        if message.tool_calls:  # templates write the arguments out as JSON themselves
            for call in plain["tool_calls"]:
                call["function"]["arguments"] = _arguments(call["function"].get("arguments"), number)
        found.append(plain)
    return found


def _arguments(written: Any, number: int) -> Any:
    if not isinstance(written, str) or not written.strip():
        return written or {}
    try:
        return msgspec.json.decode(written)
    except msgspec.DecodeError as error:
        place = f"messages[{number}].tool_calls"
        raise BadRequest(f"the arguments of a tool call must be JSON: {error}", param=place) from error


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


def check_tokens(tokens: list[int], loaded: "Loaded", param: str = "prompt") -> list[int]:
    """The token ids, if this model has them. Raises BadRequest."""
    if not all(0 <= token < loaded.vocab for token in tokens):
        raise BadRequest(f"the {param} has token ids outside of 0 to {loaded.vocab - 1}", param=param)
    return tokens


def check_prompt(prompt: list[int], loaded: "Loaded") -> list[int]:
    """The prompt, if this model can begin with it. Raises BadRequest."""
    if not prompt:
        raise BadRequest("the prompt is empty; send at least one token", param="prompt")
    check_tokens(prompt, loaded)
    if len(prompt) >= loaded.max_len:
        raise _too_long(str(len(prompt)), loaded)
    return prompt


def choices_of(
    wish: Wish, prompts: list[list[int]], loaded: "Loaded", client: str = "", grammar: Compiled | None = None
) -> list[Choice]:
    """What is to be answered: ``n`` choices of each prompt. Raises BadRequest for a wish that the model cannot keep."""
    n, resume = wish.n or 1, wish.resume
    if resume is not None and (n > 1 or len(prompts) > 1):
        raise BadRequest("only an answer of one choice can be resumed", param="resume")
    generated = check_tokens(resume.token_ids, loaded, "resume") if resume else []
    seed = secrets.randbits(63) if wish.seed is None else wish.seed
    stops = _stops(wish)
    return [
        Choice(
            prompt=prompt,
            sampling=_sampling(wish, len(prompt), seed + number, loaded),
            stops=stops,
            include_stop=bool(wish.include_stop_str_in_output),
            generated=generated,
            priority=wish.priority or 0,
            client=client or wish.user or "",
            grammar=grammar,
        )
        for prompt in prompts
        for number in range(n)
    ]


def _sampling(wish: Wish, prompt: int, seed: int, loaded: "Loaded") -> Sampling:
    temperature = 1.0 if wish.temperature is None else wish.temperature
    most = _most_tokens(wish, prompt, loaded)
    if (wish.min_tokens or 0) > most:
        raise BadRequest(f"min_tokens is more than the {most} that may come at most", param="min_tokens")
    stop_ids = frozenset(check_tokens(wish.stop_token_ids or [], loaded, "stop_token_ids"))
    bias = wish.logit_bias or {}
    check_tokens(list(bias), loaded, "logit_bias")
    return Sampling(
        max_tokens=most,
        temperature=temperature if temperature >= GREEDY_BELOW else 0.0,
        top_k=max(0, wish.top_k or 0),
        top_p=1.0 if wish.top_p is None else wish.top_p,
        seed=seed,
        stop_ids=stop_ids if wish.ignore_eos else stop_ids | loaded.eos_ids,
        min_tokens=wish.min_tokens or 0,
        min_p=wish.min_p or 0.0,
        presence_penalty=wish.presence_penalty or 0.0,
        frequency_penalty=wish.frequency_penalty or 0.0,
        repetition_penalty=1.0 if wish.repetition_penalty is None else wish.repetition_penalty,
        logit_bias=tuple(bias.items()),
        logprobs=_logprobs(wish),
    )


def _most_tokens(wish: Wish, prompt: int, loaded: "Loaded") -> int:
    room = loaded.max_len - prompt
    wanted = wish.max_tokens
    if isinstance(wish, ChatRequest):
        wanted = wish.max_completion_tokens or wanted or room
    wanted = wanted or min(COMPLETION_TOKENS, room)
    if wanted > room:
        raise BadRequest(
            f"this model's context is {loaded.max_len} tokens: {prompt} of the prompt leave {room}, not {wanted}; "
            "ask for fewer or send a shorter prompt",
            param="max_tokens",
            code="context_length_exceeded",
        )
    return wanted


def _logprobs(wish: Wish) -> int | None:
    if isinstance(wish, CompletionRequest):
        if wish.echo and wish.logprobs is not None:
            raise BadRequest("echo: logprobs of the prompt are not supported; leave one of them out", param="echo")
        return wish.logprobs
    assert isinstance(wish, ChatRequest)
    if wish.top_logprobs and not wish.logprobs:
        raise BadRequest("top_logprobs needs logprobs: true", param="top_logprobs")
    return (wish.top_logprobs or 0) if wish.logprobs else None


def _stops(wish: Wish) -> tuple[str, ...]:
    stops = [wish.stop] if isinstance(wish.stop, str) else wish.stop or []
    if not all(stops):
        raise BadRequest("a stop string must not be empty", param="stop")
    return tuple(stops)


def shape_of(wish: Wish) -> Shape | None:
    """What the answer's text must follow; None if it is free. Raises BadRequest if that is unclear."""
    found = [*_response_format(wish), *_structured(wish)]
    if len(found) > 1:
        raise BadRequest("ask for one form of the answer, not for several", param="response_format")
    return found[0] if found else None


def _response_format(wish: Wish) -> list[Shape]:
    form = wish.response_format
    if form is None or form.type == "text":
        return []
    if form.type == "json_object":
        return [Shape("json", _OBJECT)]
    if form.type != "json_schema" or form.json_schema is None:
        raise BadRequest("response_format: text, json_object, or json_schema with its schema", param="response_format")
    return [Shape("json", _json(form.json_schema.schema))]


_OBJECT = '{"type":"object"}'


def _structured(wish: Wish) -> list[Shape]:
    """vLLM's names, the present one and the older four."""
    asked = wish.structured_outputs
    forms = (
        ("json", asked and asked.json, wish.guided_json),
        ("regex", asked and asked.regex, wish.guided_regex),
        ("choice", asked and asked.choice, wish.guided_choice),
        ("grammar", asked and asked.grammar, wish.guided_grammar),
        ("json", _OBJECT if asked and asked.json_object else None, None),
    )
    return [Shape(kind, _json(value)) for kind, *values in forms for value in values if value is not None]


def _json(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
