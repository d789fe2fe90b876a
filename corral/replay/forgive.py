"""Lines of a recording that others wrote: right in meaning, if not in type.

A number may come as ``13200000000.0``, ``true`` or ``"0x40"``, a serial number as a number, an empty list as
``null``. A value that is no number where one is due (``"[N/A]"``) is not known. What names the subject of a line
must be there: nothing is invented.
"""

from typing import Any

import msgspec
from msgspec import inspect

from vocab.observations import AnyObservation

WORDS = {  # states that tools print as words, where a number is meant
    "not_supported": 0, "not_started": 1, "in_progress": 2, "completed": 3,  # fabric_state of NVML
    "disabled": 0, "enabled": 1, "off": 0, "on": 1, "no": 0, "yes": 1, "false": 0, "true": 1,
    "inactive": 0, "active": 1, "down": 0, "up": 1,
}  # fmt: skip
_KINDS: dict[str, type] = {str(kind.__struct_config__.tag): kind for kind in AnyObservation.__args__}
_FORMS: dict[str, Any] = {name: inspect.type_info(kind) for name, kind in _KINDS.items()}


def forgive(line: Any) -> AnyObservation:
    """The observation that is meant. Raises msgspec.ValidationError if what it is about cannot be told."""
    name = line["obs"]
    observation: AnyObservation = msgspec.convert(_struct(line, _FORMS[name]), _KINDS[name])
    return observation


def _meant(value: Any, form: inspect.Type) -> Any:
    """The value as its type wants it; None where it cannot be had."""
    convert = _CONVERT.get(type(form))
    return value if convert is None or value is None else convert(value, form)


def _union(value: Any, form: inspect.UnionType) -> Any:
    """The first of the types in which the value has a meaning."""
    kinds = [one for one in form.types if not isinstance(one, inspect.NoneType)]
    if any(_is(value, one) for one in kinds):
        return value
    meant = (_meant(value, one) for one in kinds)
    return next((one for one in meant if one is not None), None)


def _is(value: Any, form: inspect.Type) -> bool:
    kind = _PLAIN.get(type(form))
    return kind is not None and type(value) is kind


def _struct(value: Any, form: inspect.StructType) -> Any:
    if form.cls.__name__ == "Mig" and isinstance(value, str):
        gi, _, ci = value.partition("/")
        value = {"gi": gi, "ci": ci or None}
    if not isinstance(value, dict):
        return None if form.cls.__struct_config__.tag is None else value
    meant = dict(value)
    for field in form.fields:
        name = field.encode_name
        if name not in meant:
            continue
        found = _meant(meant[name], field.type)
        if found is None and not _takes_none(field.type):
            del meant[name]
        else:
            meant[name] = found
    return meant


def _takes_none(form: inspect.Type) -> bool:
    return isinstance(form, inspect.AnyType | inspect.NoneType) or (
        isinstance(form, inspect.UnionType) and form.includes_none
    )


def _list(value: Any, form: inspect.ListType | inspect.VarTupleType | inspect.SetType) -> Any:
    if isinstance(value, str | int | float):
        value = [value]
    if not isinstance(value, list | tuple):
        return None
    meant = [_meant(one, form.item_type) for one in value]
    return [one for one in meant if one is not None]


def _dict(value: Any, form: inspect.DictType) -> Any:
    if isinstance(value, str) and isinstance(form.value_type, inspect.StrType):
        value = {"state": value}  # link_errors with one error for the whole link
    if not isinstance(value, dict):
        return None
    meant = {key: _meant(one, form.value_type) for key, one in value.items()}
    return {key: one for key, one in meant.items() if one is not None or _takes_none(form.value_type)}


def _float(value: Any, _: inspect.Type) -> float | None:
    number = _number(value)
    return None if number is None else float(number)


def _int(value: Any, _: inspect.Type) -> int | None:
    number = _number(value)
    return None if number is None or number != int(number) else int(number)


def _number(value: Any) -> float | None:
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    try:
        return int(text, 16) if text.startswith("0x") else float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return WORDS.get(text)


def _bool(value: Any, _: inspect.Type) -> bool | None:
    number = _number(value)
    return None if number is None else bool(number)


def _str(value: Any, _: inspect.Type) -> str | None:
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None


_PLAIN: dict[type, type] = {
    inspect.IntType: int, inspect.FloatType: float, inspect.BoolType: bool, inspect.StrType: str,
}  # fmt: skip
_CONVERT: dict[type, Any] = {
    inspect.UnionType: _union,
    inspect.StructType: _struct,
    inspect.VarTupleType: _list,
    inspect.ListType: _list,
    inspect.SetType: _list,
    inspect.DictType: _dict,
    inspect.FloatType: _float,
    inspect.IntType: _int,
    inspect.BoolType: _bool,
    inspect.StrType: _str,
}
