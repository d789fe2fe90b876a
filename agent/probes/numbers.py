"""Numbers of more than 64 bits: no counter, process or place has one, and none can be stored. They are absent.

What is known only by such a number (a process by its id) is not known at all, and is left out.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

LEAST, MOST = -(2**63), 2**63 - 1
_ENCODER = msgspec.msgpack.Encoder()
_S = TypeVar("_S", bound=msgspec.Struct)


def storable(observation: _S) -> _S | None:
    """The observation without such numbers; itself if it has none, None if one of them names what it is about."""
    try:
        _ENCODER.encode(observation)
    except OverflowError:
        return _struct(observation)
    return observation


def _part(value: Any) -> Any:
    if isinstance(value, int):
        return value if LEAST <= value <= MOST else None
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, Mapping):
        return {key: kept for key, one in value.items() if (kept := _part(one)) is not None or one is None}
    if isinstance(value, list | tuple):
        return type(value)(kept for one in value if (kept := _part(one)) is not None or one is None)
    return value


def _struct(value: _S) -> _S | None:
    kept = {}
    for field in msgspec.structs.fields(value):
        before = getattr(value, field.name)
        kept[field.name] = _part(before)
        if kept[field.name] is None and before is not None and field.default is not None:
            return None
    return msgspec.structs.replace(value, **kept)
