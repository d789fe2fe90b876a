"""How payload readers pick values out of a text: groups under names as strings or numbers, and the channel in front."""

import re
from typing import Any

Fields = dict[str, Any]

_CHANNEL = re.compile(r"(?:Ch|Channel|Channel ID|ChID|ChId|channel) (?:0x)?([0-9a-fA-F]{1,8})\b")


def channel(text: str) -> Fields:
    """The channel that a payload begins with, however it is spelled; nothing where it begins otherwise."""
    found = _CHANNEL.match(text)
    return {"channel": int(found[1], 16)} if found else {}


def strings(pattern: re.Pattern[str], text: str, *names: str) -> Fields:
    """The groups of the first match under these names; groups that took no part are left out."""
    found = pattern.search(text)
    if not found:
        return {}
    return {name: value for name, value in zip(names, found.groups(), strict=True) if value is not None}


def numbers(pattern: re.Pattern[str], text: str, *names: str) -> Fields:
    """The same, as decimal numbers."""
    return {name: int(value) for name, value in strings(pattern, text, *names).items()}
