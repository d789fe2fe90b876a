"""Configuration: one frozen struct a process, read once from TOML. Errors name file, key and rule, all at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec

from vocab.errors import ConfigError

T = TypeVar("T")


def load(path: Path, kind: type[T]) -> T:
    """The TOML file at ``path`` as ``kind``, which should forbid unknown fields. Raises ConfigError, a line each."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from error
    try:
        return msgspec.toml.decode(raw, type=kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        every = list(_errors(msgspec.toml.decode(raw), kind, "$")) or [str(error)]
        raise ConfigError("\n".join(f"{path}: {each}" for each in every)) from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def _errors(value: Any, kind: Any, place: str) -> Iterator[str]:
    """All that is wrong in a value, each with its place: first what is in it, and if that is right itself."""
    kind = _of_many(value, kind)
    found = [error for inner in _parts(value, kind, place) for error in _errors(*inner)]
    found += [_at(error, place) for error in _misnamed(value, kind)]
    if not found:
        try:
            msgspec.convert(value, kind, dec_hook=_path)
        except msgspec.ValidationError as error:
            found = [_at(str(error), place)]
    yield from found


def _of_many(value: Any, kind: Any) -> Any:
    """Of ``X | None`` the X, where there is a table or a list and one of them is meant."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(bare) in {tuple, list, dict} or not isinstance(value, dict | list):
        return kind
    fitting = [each for each in get_args(bare) if _is_for(value, each)]
    return fitting[0] if len(fitting) == 1 else kind


def _is_for(value: Any, kind: Any) -> bool:
    if isinstance(value, list):
        return get_origin(kind) in {tuple, list}
    return _is_struct(kind) or get_origin(kind) is dict


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _parts(value: Any, kind: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    """What a table or a list holds, with its type and its place."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    inner = get_args(bare)
    if isinstance(value, list) and get_origin(bare) in {tuple, list} and inner[1:] in {(), (...,)}:
        yield from ((each, inner[0], f"{place}[{number}]") for number, each in enumerate(value))
    elif isinstance(value, dict) and get_origin(bare) is dict:
        yield from ((each, inner[1], f"{place}.{name}") for name, each in value.items())
    elif isinstance(value, dict) and _is_struct(bare):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(bare)}
        yield from ((each, fields[name], f"{place}.{name}") for name, each in value.items() if name in fields)


def _misnamed(value: Any, kind: Any) -> Iterator[str]:
    """The keys of a table that mean nothing, and those that are missing."""
    if not (isinstance(value, dict) and _is_struct(kind)):
        return
    fields, rules = msgspec.structs.fields(kind), kind.__struct_config__
    known = {field.encode_name for field in fields} | {rules.tag_field}
    unknown = [name for name in value if name not in known] if rules.forbid_unknown_fields else []
    yield from (f"Object contains unknown field `{name}`" for name in unknown)
    missing = [field.encode_name for field in fields if field.required and field.encode_name not in value]
    yield from (f"Object missing required field `{name}`" for name in missing)


def _at(error: str, place: str) -> str:
    """msgspec's words, with the place in the whole file."""
    words, _, inner = error.rpartition(" - at `$")
    if not words:
        return error if place == "$" else f"{error} - at `{place}`"
    return f"{words} - at `{place}{inner}"


def _path(kind: type, value: object) -> object:
    """TOML has no paths: a key of type Path is a string there."""
    if kind is Path and isinstance(value, str) and value:
        return Path(value)
    raise NotImplementedError(f"a value of type {kind.__name__} cannot be made of {value!r}")


def split_address(address: str, key: str = "listen") -> tuple[str, int]:
    """``host:port`` taken apart. Raises ConfigError naming ``key``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{key}: {address!r} is not host:port, for example 127.0.0.1:7400")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    return host in {"localhost", "::1"} or host.startswith("127.")
