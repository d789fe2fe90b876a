"""Answers in the form of the OpenAI API: whole, or chunk by chunk as server-sent events."""

import secrets
import time
from typing import Any

import msgspec

from engine.api.answer import Choice, Piece
from engine.api.requests import ChatRequest, Wish
from engine.core.sequence import Finish, TokenLogprobs
from engine.text.tokenizer import Tokenizer
from engine.text.tools import Call, ToolCalls

DONE = b"data: [DONE]\n\n"
LEAST_LOGPROB = -9999.0  # JSON has no infinity; vLLM's choice


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


class Told:
    """What of one choice has been told so far."""

    def __init__(self, choice: Choice, calls: ToolCalls | None) -> None:
        self.choice = choice
        self.calls = calls
        self.generated = 0
        self.cached = 0
        self.offset = 0  # letters of the tokens so far
        self.first = True

    def take(self, piece: Piece) -> tuple[str, list[Call], str | None]:
        """Text to show, tool calls and the reason of the end in this piece."""
        self.generated += len(piece.token_ids)
        self.cached = piece.cached
        text, finish = piece.text, piece.finish
        calls: list[Call] = []
        if self.calls is not None:
            text, calls = self.calls.push(text)
            if finish is not None:
                text += self.calls.flush()
            if finish is Finish.STOP and self.calls.count:
                return text, calls, "tool_calls"
        return text, calls, finish


class Form:
    """One answer to be, of /v1/completions; it stays the same from its first chunk to its last."""

    prefix = "cmpl"
    whole_object = "text_completion"
    chunk_object = "text_completion"

    def __init__(self, wish: Wish, choices: list[Choice], tokens: Tokenizer) -> None:
        resume = wish.resume
        id_ = (resume and resume.id) or f"{self.prefix}-{secrets.token_hex(12)}"
        self._head = {"id": id_, "created": (resume and resume.created) or int(time.time()), "model": wish.model}
        self._wish = wish
        self._tokens = tokens
        self._told = [Told(choice, self._calls()) for choice in choices]
        options = wish.stream_options
        self.ends_with_usage = bool(options and options.include_usage)
        self._usage_with_each = bool(self.ends_with_usage and options and options.continuous_usage_stats)

    def usage(self) -> dict[str, Any]:
        """Tokens so far; a prompt of several choices counts once. ``cached_tokens`` are known at the end."""
        of_prompts = self._told[:: self._wish.n or 1]
        prompt = sum(len(told.choice.prompt) for told in of_prompts)
        generated = sum(told.generated for told in self._told)
        cached = {"cached_tokens": sum(told.cached for told in of_prompts)}
        return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated,
                "prompt_tokens_details": cached}  # fmt: skip

    def chunk(self, number: int, piece: Piece) -> dict[str, Any] | None:
        """A piece of a choice as a chunk; None if it tells nothing yet."""
        told = self._told[number]
        text, calls, finish = told.take(piece)
        logprobs = self._logprobs_of(told, piece)
        if piece.known:
            told.first, text, calls = False, "", []
        if finish is None and (piece.known or not (text or calls or logprobs or self._shows_tokens(piece))):
            return None
        choice = {"index": number, **self._delta(told, text, calls), "logprobs": logprobs, "finish_reason": finish}
        body = {**self._head, "object": self.chunk_object, "choices": [choice]}
        if finish is not None:
            choice["stop_reason"] = self._stop_reason(piece)
        if self._wish.return_token_ids:
            choice["token_ids"] = [] if piece.known else piece.token_ids
            if told.first:
                self._show_prompt(body, choice, told)
        if self._usage_with_each:
            body["usage"] = self.usage()
        told.first = False
        return body

    def usage_chunk(self) -> dict[str, Any]:
        """The chunk that ``stream_options.include_usage`` asks for."""
        return {**self._head, "object": self.chunk_object, "choices": [], "usage": self.usage()}

    def whole(self, pieces: list[list[Piece]]) -> dict[str, Any]:
        """The answer in one, of the pieces of each choice."""
        body: dict[str, Any] = {**self._head, "object": self.whole_object, "choices": []}
        for number, (told, parts) in enumerate(zip(self._told, pieces, strict=True)):
            joined = _joined(parts)
            text, calls, finish = told.take(joined)
            logprobs = self._logprobs_of(told, joined)
            choice = {"index": number, **self._message(told, text, calls), "logprobs": logprobs,
                      "finish_reason": finish, "stop_reason": self._stop_reason(joined)}  # fmt: skip
            if self._wish.return_token_ids:
                choice["token_ids"] = joined.token_ids
                self._show_prompt(body, choice, told)
            body["choices"].append(choice)
        body["usage"] = self.usage()
        return body

    def _shows_tokens(self, piece: Piece) -> bool:
        return bool(piece.token_ids) and bool(self._wish.return_token_ids or self._usage_with_each)

    def _stop_reason(self, piece: Piece) -> str | int | None:
        """What of the request ended the answer; None for the model's own end, in vLLM's form."""
        last = piece.token_ids[-1] if piece.finish is Finish.STOP and piece.token_ids else None
        return piece.stopped_by or (last if last in (self._wish.stop_token_ids or ()) else None)

    def _logprobs_of(self, told: Told, piece: Piece) -> dict[str, Any] | None:
        words = [self._word(token) for token in piece.token_ids]
        begins = told.offset
        told.offset += sum(len(word) for word in words)
        if not piece.logprobs:
            return None
        new = len(piece.logprobs)  # those of a resumed answer's beginning are not known
        return self._logprobs(piece.token_ids[-new:], words[-new:], piece.logprobs, begins)

    def _word(self, token: int) -> str:
        return self._tokens.bytes_of(token).decode(errors="replace")

    def _calls(self) -> ToolCalls | None:
        return None

    def _show_prompt(self, body: dict[str, Any], choice: dict[str, Any], told: Told) -> None:
        choice["prompt_token_ids"] = told.choice.prompt

    def _delta(self, told: Told, text: str, calls: list[Call]) -> dict[str, Any]:
        echo = told.first and getattr(self._wish, "echo", None)
        return {"text": self._tokens.decode(told.choice.prompt) + text if echo else text}

    def _message(self, told: Told, text: str, calls: list[Call]) -> dict[str, Any]:
        return self._delta(told, text, calls)

    def _logprobs(self, tokens: list[int], words: list[str], found: list[TokenLogprobs], offset: int) -> dict[str, Any]:
        offsets = [offset + sum(len(word) for word in words[:place]) for place in range(len(words))]
        best = [
            {self._word(one): _finite(value) for one, value in (*told.best, (token, told.logprob))}
            for token, told in zip(tokens, found, strict=True)
        ]
        chosen = [_finite(told.logprob) for told in found]
        return {"tokens": words, "token_logprobs": chosen, "top_logprobs": best, "text_offset": offsets}


class ChatForm(Form):
    """An answer of /v1/chat/completions."""

    prefix = "chatcmpl"
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def __init__(self, wish: ChatRequest, choices: list[Choice], tokens: Tokenizer, *, reads_calls: bool) -> None:
        self._reads_calls = reads_calls and bool(wish.tools) and wish.tool_choice != "none"
        super().__init__(wish, choices, tokens)

    def _calls(self) -> ToolCalls | None:
        return ToolCalls() if self._reads_calls else None

    def _show_prompt(self, body: dict[str, Any], choice: dict[str, Any], told: Told) -> None:
        body["prompt_token_ids"] = told.choice.prompt

    def _delta(self, told: Told, text: str, calls: list[Call]) -> dict[str, Any]:
        role = {"role": "assistant"} if told.first else {}
        if not calls:
            return {"delta": {**role, "content": text}}
        assert told.calls is not None
        first = told.calls.count - len(calls)
        forms = [{"index": place, **call.form()} for place, call in enumerate(calls, first)]
        return {"delta": {**role, **({"content": text} if text else {}), "tool_calls": forms}}

    def _message(self, told: Told, text: str, calls: list[Call]) -> dict[str, Any]:
        if not calls:
            return {"message": {"role": "assistant", "content": text}}
        shown = text if text.strip() else None
        return {"message": {"role": "assistant", "content": shown, "tool_calls": [call.form() for call in calls]}}

    def _logprobs(self, tokens: list[int], words: list[str], found: list[TokenLogprobs], offset: int) -> dict[str, Any]:
        return {
            "content": [
                {**self._one(token, told.logprob), "top_logprobs": [self._one(*pair) for pair in told.best]}
                for token, told in zip(tokens, found, strict=True)
            ]
        }

    def _one(self, token: int, logprob: float) -> dict[str, Any]:
        return {"token": self._word(token), "logprob": _finite(logprob), "bytes": list(self._tokens.bytes_of(token))}


def _finite(logprob: float) -> float:
    return max(logprob, LEAST_LOGPROB)


def _joined(parts: list[Piece]) -> Piece:
    return Piece(
        "".join(part.text for part in parts),
        [token for part in parts for token in part.token_ids],
        parts[-1].finish,
        [told for part in parts for told in part.logprobs],
        parts[-1].stopped_by,
        cached=parts[-1].cached,
    )
