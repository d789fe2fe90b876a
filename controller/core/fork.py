"""A copy of the fleet that can be thought with: what is decided on it is decided on nothing else.

What never changes (lines, facts, statuses, keys) is shared, and what does is copied, so a copy costs little more than
its dictionaries.
"""

import copy
from collections import deque
from collections.abc import Callable
from itertools import count
from types import MethodType
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")
ATOMS = (str, bytes, int, float, bool, type(None), frozenset)


def fork(thing: T) -> T:
    """The thing, and all that it holds that may change, once more."""
    return cast("T", _Fork().of(thing))


class _Fork:
    """One copying: what was copied already is not copied again, and what kinds of things are shared."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._shared: dict[type, bool] = {}

    def of(self, thing: Any) -> Any:
        kind = type(thing)
        shared = self._shared.get(kind)
        if shared is None:
            shared = self._shared[kind] = _is_shared(thing)
        if shared:
            return thing
        found = self._made.get(id(thing))
        return self._copy(thing, kind) if found is None else found

    def _copy(self, thing: Any, kind: type) -> Any:
        of: Callable[[Any], Any] = self.of
        if kind is MethodType:
            return MethodType(thing.__func__, of(thing.__self__))
        if kind is tuple:
            return tuple(map(of, thing))
        made = copy.copy(thing)
        self._made[id(thing)] = made
        if isinstance(thing, dict):
            dict.update(made, zip(thing, map(of, thing.values()), strict=True))  # a Counter's own would count pairs
        elif isinstance(thing, list | deque):
            made.clear()
            made.extend(map(of, thing))
        elif not isinstance(thing, set | count):
            names = thing.__struct_fields__ if isinstance(thing, msgspec.Struct) else vars(thing)
            for name in names:
                setattr(made, name, of(getattr(thing, name)))
        return made


def _is_shared(thing: Any) -> bool:
    """Whether things of its kind never change, or are no part of a state."""
    if isinstance(thing, msgspec.Struct):
        return thing.__struct_config__.frozen
    return isinstance(thing, ATOMS) or (callable(thing) and not isinstance(thing, MethodType))
