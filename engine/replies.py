"""Answers in the form of the OpenAI API: whole, or chunk by chunk as server-sent events."""

import secrets
import time
from typing import Any

import msgspec

from engine.answer import Piece

DONE = b"data: [DONE]\n\n"


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


class Form:
    """One answer to be: the ids and counts that stay the same from its first chunk to its last."""

    prefix = "cmpl"
    whole_object = "text_completion"
    chunk_object = "text_completion"

    def __init__(self, model: str, prompt: list[int], *, token_ids: bool) -> None:
        self._head = {"id": f"{self.prefix}-{secrets.token_hex(12)}", "created": int(time.time()), "model": model}
        self._prompt = prompt
        self._token_ids = token_ids
        self._generated = 0
        self._first = True

    def wants(self, piece: Piece) -> bool:
        """Whether this piece makes a chunk: one without text only carries token ids or the end."""
        return bool(piece.text) or piece.finish is not None or (self._token_ids and bool(piece.token_ids))

    def count(self, piece: Piece) -> None:
        """Book the tokens of a piece."""
        self._generated += len(piece.token_ids)

    def usage(self) -> dict[str, int]:
        """Tokens so far."""
        total = len(self._prompt) + self._generated
        return {"prompt_tokens": len(self._prompt), "completion_tokens": self._generated, "total_tokens": total}

    def chunk(self, piece: Piece) -> dict[str, Any]:
        """A piece as a chunk."""
        choice = {"index": 0, **self._delta(piece.text), "logprobs": None, "finish_reason": piece.finish}
        body = {**self._head, "object": self.chunk_object, "choices": [choice]}
        if self._token_ids:
            choice["token_ids"] = piece.token_ids
            if self._first:
                body["prompt_token_ids"] = self._prompt
        self._first = False
        return body

    def usage_chunk(self) -> dict[str, Any]:
        """The chunk that ``stream_options.include_usage`` asks for."""
        return {**self._head, "object": self.chunk_object, "choices": [], "usage": self.usage()}

    def whole(self, pieces: list[Piece]) -> dict[str, Any]:
        """The answer in one."""
        text = "".join(piece.text for piece in pieces)
        choice = {"index": 0, **self._message(text), "logprobs": None, "finish_reason": pieces[-1].finish}
        body = {**self._head, "object": self.whole_object, "choices": [choice], "usage": self.usage()}
        if self._token_ids:
            choice["token_ids"] = [token for piece in pieces for token in piece.token_ids]
            body["prompt_token_ids"] = self._prompt
        return body

    def _delta(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def _message(self, text: str) -> dict[str, Any]:
        return {"text": text}


class ChatForm(Form):
    """An answer of /v1/chat/completions."""

    prefix = "chatcmpl"
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def _delta(self, text: str) -> dict[str, Any]:
        role = {"role": "assistant"} if self._first else {}
        return {"delta": {**role, "content": text}}

    def _message(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text}}
