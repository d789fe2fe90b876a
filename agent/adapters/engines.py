"""The engines that this agent knows, and how a running one is recognised."""

from collections.abc import Sequence
from pathlib import PurePath

from agent.adapters.adapter import Adapter
from agent.adapters.command import COMMAND
from agent.adapters.sglang import SGLANG
from agent.adapters.torch import TORCH
from agent.adapters.vllm import VLLM
from vocab.errors import ConfigError

ENGINES: dict[str, Adapter] = {one.name: one for one in (TORCH, VLLM, SGLANG, COMMAND)}
_BY_MARKS = (TORCH, SGLANG, VLLM)  # our own engine exports vLLM's names beside its own


def adapter(engine: str) -> Adapter:
    """The engine of this name. Raises ConfigError naming those that there are."""
    if engine not in ENGINES:
        raise ConfigError(f"engine: {engine!r} is not one that this agent starts ({', '.join(sorted(ENGINES))})")
    return ENGINES[engine]


def by_metrics(text: str) -> Adapter:
    """The engine whose /metrics this is; one that shows none that are known is a ``command``."""
    return next((one for one in _BY_MARKS if any(f"\n{mark}" in f"\n{text}" for mark in one.marks)), COMMAND)


def by_command(words: Sequence[str]) -> Adapter | None:
    """The engine that this command line starts (its program first), if that is plain to see."""
    program = PurePath(words[0]).name if words else ""
    named = (one for one in ENGINES.values() if program in one.named_by)
    return next((one for one in named if set(one.named_with) <= set(words)), None)


def flag(words: Sequence[str], *names: str) -> str | None:
    """The value of the first of these flags that is given, as ``--name value`` or ``--name=value``."""
    for name in names:
        for place, word in enumerate(words):
            if word == name and place + 1 < len(words):
                return words[place + 1]
            if word.startswith(f"{name}="):
                return word.partition("=")[2]
    return None
