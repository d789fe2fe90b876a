"""Tool calls in an answer's text, for the families whose templates write them as Hermes did (Qwen, SmolLM and others):

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Rome"}}
    </tool_call>

What does not parse as such a call is text, as it is.
"""

import secrets
from typing import Any

import msgspec

from engine.text.detokenizer import StopFinder

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class Call(msgspec.Struct, frozen=True):
    """One call. ``arguments`` is JSON in a string, as OpenAI's clients read it."""

    id: str
    name: str
    arguments: str

    def form(self) -> dict[str, Any]:
        """As it stands in a message."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


class _Written(msgspec.Struct):
    name: str
    arguments: dict[str, Any] = {}


class ToolCalls:
    """Text in; text that may be shown and whole calls out."""

    def __init__(self) -> None:
        self._before = StopFinder([OPEN])
        self._inside: str | None = None  # what came behind an opening that is not closed yet
        self.count = 0

    def push(self, text: str) -> tuple[str, list[Call]]:
        """The text outside of calls, and the calls that are complete with this text."""
        shown = ""
        calls: list[Call] = []
        while True:
            if self._inside is None:
                held = self._before.held + text
                shown += self._before.push(text)
                if self._before.found is None:
                    return shown, calls
                self._before = StopFinder([OPEN])
                self._inside, text = "", held.partition(OPEN)[2]
            body, closed, text = (self._inside + text).partition(CLOSE)
            if not closed:
                self._inside = body
                return shown, calls
            self._inside = None
            call = _call(body)
            if call is None:
                shown += OPEN + body + CLOSE
            else:
                calls.append(call)
                self.count += 1

    def flush(self) -> str:
        """What is left at the end: a call that was not closed is text."""
        if self._inside is None:
            return self._before.flush()
        inside, self._inside = self._inside, None
        return OPEN + inside


def _call(body: str) -> Call | None:
    try:
        written = msgspec.json.decode(body.strip(), type=_Written)
    except msgspec.DecodeError:
        return None
    arguments = msgspec.json.encode(written.arguments).decode()
    return Call(f"call_{secrets.token_hex(12)}", written.name, arguments)
