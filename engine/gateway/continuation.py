"""What another replica needs to go on with a stream that breaks, and what of its events the client sees. Pure.

An engine of Corral's is asked for the token ids of its chunks, and to draw with a seed of ours where the client gave
none: from the ids so far another replica then goes on as the first would have (docs/engine.md, *Resume*). What the
client did not ask for it does not see.
"""

import secrets
from typing import Any

import msgspec
from msgspec import Raw

from engine.gateway.ask import Ask

EVENT, DONE = b"data: ", b"data: [DONE]"
SEED_BITS = 63

Wish = dict[str, Raw]


class CutOff(Exception):
    """The replica ends the answer before its end, and says so. ``failed``: something broke there."""

    def __init__(self, *, failed: bool) -> None:
        super().__init__("the replica failed" if failed else "the replica stopped")
        self.failed = failed


class Continuation:
    """Of one stream, over all replicas that give a part of it."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._shows_ids = _value(wish, "return_token_ids") is True
        options = _value(wish, "stream_options")
        self._wants_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._seed = Raw(msgspec.json.encode(secrets.randbits(SEED_BITS)))
        self._prompt: list[int] | None = None
        self._head: dict[str, Any] = {}
        self._finished = self._told_usage = False
        self.refused = False  # the answer ended with an error that another replica would give too
        self.tokens: list[int] = []
        """The answer so far."""

    @property
    def lacks_only_its_end(self) -> bool:
        """Whether the client has all but the last event, which is the same for all answers."""
        return self._finished and (self._told_usage or not self._wants_usage)

    def body(self) -> bytes:
        """The request as the next replica gets it."""
        asked = self._wish | {"return_token_ids": Raw(b"true")}
        if _value(asked, "seed") is None:
            asked["seed"] = self._seed
        if self._prompt is not None:
            known = {"prompt_token_ids": self._prompt, "token_ids": self.tokens, **self._head}
            asked["resume"] = Raw(msgspec.json.encode(known))
        return msgspec.json.encode(asked)

    def take(self, event: bytes) -> bytes:
        """The event as the client sees it; empty if it has nothing for it. Raises CutOff for an early end."""
        if not event.startswith(EVENT) or event.startswith(DONE):
            return event
        try:
            chunk = msgspec.json.decode(event[len(EVENT) :], type=dict[str, Any])
        except msgspec.DecodeError:  # whatever it is, it is none of ours
            return event
        choices = chunk.get("choices") or []
        if "error" in chunk and _is_of_the_request(chunk["error"]):
            self.refused = True
            return event
        if "error" in chunk or any(choice.get("finish_reason") == "abort" for choice in choices):
            raise CutOff(failed="error" in chunk)
        if choices and self._finished:  # the last words of an answer that lacked only its usage
            return b""
        self._learn(chunk, choices)
        if self._shows_ids:
            return event
        if not _strip(chunk, choices):
            return b""
        return EVENT + msgspec.json.encode(chunk)

    def _learn(self, chunk: dict[str, Any], choices: list[dict[str, Any]]) -> None:
        self._head = self._head or {"id": chunk.get("id"), "created": chunk.get("created")}
        self._told_usage |= not choices and "usage" in chunk
        for choice in choices:
            if self._prompt is None:
                self._prompt = choice.get("prompt_token_ids") or chunk.get("prompt_token_ids")
            self.tokens += choice.get("token_ids") or []
            self._finished |= choice.get("finish_reason") is not None


def continuation_of(ask: Ask) -> Continuation | None:
    """What lets this request go on elsewhere; None if it cannot: it does not stream, or wants several answers.

    One that is resumed by its client already is left to it.
    """
    if not ask.streams:
        return None
    wish = msgspec.json.decode(ask.raw, type=Wish)
    prompt = wish.get("prompt", Raw(b""))
    if _value(wish, "n") not in (None, 1) or _value(wish, "resume") is not None:
        return None
    if bytes(prompt).startswith(b"[") and not _is_one(msgspec.json.decode(prompt)):
        return None
    return Continuation(wish)


def _is_one(prompts: list[Any]) -> bool:
    return len(prompts) == 1 or all(isinstance(one, int) for one in prompts)


def _value(wish: Wish, name: str) -> Any:
    return msgspec.json.decode(wish[name]) if name in wish else None


def _is_of_the_request(error: Any) -> bool:
    return isinstance(error, dict) and error.get("type") == "invalid_request_error"


def _strip(chunk: dict[str, Any], choices: list[dict[str, Any]]) -> bool:
    """Take away what only the gateway asked for; whether something is left that tells."""
    chunk.pop("prompt_token_ids", None)
    for choice in choices:
        choice.pop("prompt_token_ids", None)
        choice.pop("token_ids", None)
    return "usage" in chunk or any(map(_tells, choices)) or not choices


def _tells(choice: dict[str, Any]) -> bool:
    shown = choice.get("delta", choice)
    return bool(shown.get("content") or shown.get("text") or shown.get("tool_calls") or "role" in shown
                or choice.get("logprobs") or choice.get("finish_reason"))  # fmt: skip
