"""Chat messages to one prompt, by the model's own template in jinja2's sandbox."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from engine.text.tools import OPEN
from vocab.errors import InputError, ModelError


class ChatTemplate:
    """A compiled chat template."""

    def __init__(self, source: str, tokens: Mapping[str, str], where: str) -> None:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        self._error: type[Exception] = jinja2.TemplateError
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise ModelError(f"{where}: the chat template is wrong at line {error.lineno}: {error.message}") from error
        self.writes_tool_calls = OPEN in source  # in the form that engine.text.tools reads
        self._tokens = dict(tokens)  # bos_token, eos_token: templates write them out

    def render(self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] | None = None,
               ask: bool = True, more: Mapping[str, Any] | None = None) -> str:  # fmt: skip
        """The prompt; with ``ask`` one that asks for the next message of the assistant.

        ``tools`` are shown to the model if its template knows of tools; ``more`` are the template's own switches.
        Raises InputError if the template refuses.
        """
        names = {**self._tokens, **(more or {}), "messages": messages, "tools": tools or None}
        try:
            return self._template.render(names, add_generation_prompt=ask)
        except (self._error, TypeError, ValueError) as error:
            raise InputError(f"the model's chat template refuses these messages: {error}") from error


def _refuse(message: str) -> NoReturn:
    raise InputError(f"the model's chat template refuses these messages: {message}")


def _now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def from_folder(folder: Path) -> ChatTemplate | None:
    """The template of a model folder; None if it has none."""
    config: dict[str, Any] = {}
    path = folder / "tokenizer_config.json"
    if path.is_file():
        try:
            config = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ModelError(f"{path}: not JSON: {error}") from error
    beside = folder / "chat_template.jinja"
    source = beside.read_text() if beside.is_file() else config.get("chat_template")
    if not isinstance(source, str):
        return None
    tokens = {name: _text(config.get(name)) for name in ("bos_token", "eos_token") if config.get(name)}
    return ChatTemplate(source, tokens, str(folder))


def _text(token: Any) -> str:
    return str(token["content"]) if isinstance(token, dict) else str(token)


def from_gguf(meta: Mapping[str, Any], where: str) -> ChatTemplate | None:
    """The template in GGUF's metadata; None if it has none."""
    source = meta.get("tokenizer.chat_template")
    if not isinstance(source, str):
        return None
    names: list[str] = meta.get("tokenizer.ggml.tokens", [])
    ids = {name: meta.get(f"tokenizer.ggml.{name}_id") for name in ("bos_token", "eos_token")}
    return ChatTemplate(source, {name: names[number] for name, number in ids.items() if number is not None}, where)
