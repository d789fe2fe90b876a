"""Configuration: one frozen struct a process, read once from TOML. Errors name file, key and rule."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from vocab.errors import ConfigError

T = TypeVar("T")


def load(path: Path, kind: type[T]) -> T:
    """The TOML file at ``path`` as ``kind``, which should forbid unknown fields. Raises ConfigError."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from error
    try:
        return msgspec.toml.decode(raw, type=kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_named(str(error), msgspec.toml.decode(raw), kind)}") from error
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def _named(told: str, table: dict[str, Any], kind: type) -> str:
    """What is wrong, with the name of the table that it is in: msgspec writes ``$.pools[...].level``."""
    key, of_many, _ = told.rpartition("`$.")[2].partition("[...]")
    entries = table.get(key)
    if not of_many or not isinstance(entries, dict):
        return told
    for name, entry in entries.items():
        try:
            msgspec.convert({**table, key: {name: entry}}, kind, dec_hook=_path)
        except msgspec.ValidationError as error:
            if str(error) == told:
                return told.replace(f"$.{key}[...]", f"$.{key}.{name}")
    return told


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
