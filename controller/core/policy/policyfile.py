"""A policy file, read: TOML with differences from the built-in policy. Errors name the key and the rule they break.

All that is wrong is told at once, one line each.

    version = "2026-11"          # printed on every action; left out: a hash of the file
    level = "cordon"             # the most that automation does anywhere

    [limits]                     # differences from the built-in budget
    cordons = 3

    [rules."xid:48"]             # differences from the catalogue's row
    recovery = "reboot_node"
    level = "cordon"             # the most that is done for this code
    shadow = true                # or nothing at all: only say what would be done
    models = ["H100"]            # only on these boards

    [pools.test]                 # for the nodes of a pool; a pool's rule goes before the common one
    level = "observe"
    limits.cordons = 1
    rules."xid:48".level = "fence"

Every hold must have an exit, so a rule may not hold a GPU for a code that opens no condition: nothing would end it.
"""

import re
from collections.abc import Callable
from enum import Enum
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from controller.core.fleet.ladder import LADDER, needs_repair
from controller.core.fleet.settings import Limits, Pool, Rule, Settings
from vocab.catalogue import codes
from vocab.errors import ConfigError
from vocab.states import Level

T = TypeVar("T")
KEYS = frozenset({"version", "level", "limits", "rules", "pools"})
POOL_KEYS = frozenset({"level", "limits", "rules"})
# Numbers that a driver may come to log, whatever the catalogue knows: its Xids have three digits at most, SXids five.
_NUMBERS = re.compile(r"xid:[1-9]\d{0,2}|sxid:[1-9]\d{4}")
MOST_VERSION = 60  # it stands on every action
Table = dict[str, Any]


def read(raw: bytes, name: str = "policy") -> Settings:
    """The settings that a policy file asks for. Raises ConfigError, a line each: ``name: key: what is wrong``."""
    try:
        table = msgspec.toml.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{name}: not valid TOML: {error}") from error
    wrong: list[str] = []
    found = _Reader(wrong).settings(table, f"file-{blake2b(raw, digest_size=4).hexdigest()}")
    if wrong:
        raise ConfigError("\n".join(f"{name}: {one}" for one in wrong))
    return found


def of(content: str, name: str = "policy") -> Settings:
    """As ``read``; without any content, the built-in policy under its own name."""
    return read(content.encode(), name) if content.strip() else Settings()


class _Reader:
    """Reads every key, whatever is wrong with the others; ``wrong`` gathers what is."""

    def __init__(self, wrong: list[str]) -> None:
        self._wrong = wrong

    def _try(self, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except ConfigError as error:
            self._wrong.append(str(error))
            return otherwise

    def settings(self, table: Table, version: str) -> Settings:
        """The whole file."""
        self._known(table, KEYS, "")
        limits = self._limits(table.get("limits", {}), Limits(), "limits")
        pools = self._try(lambda: _table(table, "pools", ""), Table())
        return Settings(
            policy=self._try(lambda: _version(table.get("version", version)), version),
            level=self._try(lambda: _convert(table.get("level", Level.REPAIR), Level, "level"), Level.OBSERVE),
            limits=limits,
            rules=self._rules(table, ""),
            pools={pool: self._pool(body, limits, f"pools.{pool}") for pool, body in pools.items()},
        )

    def _pool(self, body: object, common: Limits, key: str) -> Pool:
        table = self._try(lambda: _convert(body, Table, key), Table())
        self._known(table, POOL_KEYS, f"{key}.")
        level, limits = table.get("level"), table.get("limits")
        return Pool(
            level=None if level is None else self._try(lambda: _convert(level, Level, f"{key}.level"), None),
            limits=None if limits is None else self._limits(limits, common, f"{key}.limits"),
            rules=self._rules(table, f"{key}."),
        )

    def _limits(self, differences: object, common: Limits, key: str) -> Limits:
        limits = common
        for name, given in self._try(lambda: _convert(differences, Table, key), Table()).items():
            limits = self._try(partial(_limit, name, given, limits, key), limits)
        return limits

    def _rules(self, table: Table, prefix: str) -> dict[str, Rule]:
        rules = self._try(lambda: _table(table, "rules", prefix), Table())
        read = {code: self._try(partial(_rule, code, body, f'{prefix}rules."{code}"'), None)
                for code, body in rules.items()}  # fmt: skip
        return {code: rule for code, rule in read.items() if rule is not None}

    def _known(self, table: Table, keys: frozenset[str], prefix: str) -> None:
        known = ", ".join(sorted(keys))
        self._wrong += [f"{prefix}{key}: there is no such key; known are {known}" for key in table if key not in keys]


def doubts(settings: Settings) -> list[str]:
    """What is allowed and may be a slip: rules for numbers that the catalogue does not know, a line each."""
    tables = [("", settings.rules), *((f"pools.{name}.", pool.rules) for name, pool in settings.pools.items())]
    return [
        f'{prefix}rules."{code}": the catalogue does not know this number: an event of it is a warning to look at,'
        f" unless this rule says more{codes.nearest(code)}"
        for prefix, rules in tables
        for code in rules
        if code not in codes.ROWS
    ]


def _version(given: object) -> str:
    version = _convert(given, str, "version")
    if not version.strip() or len(version) > MOST_VERSION or not version.isprintable():
        raise ConfigError(f"version: must be a name of 1 to {MOST_VERSION} printable characters, not {version!r}")
    return version


def _limit(name: str, given: object, common: Limits, key: str) -> Limits:
    if name not in Limits.__struct_fields__:
        known = ", ".join(sorted(Limits.__struct_fields__))
        raise ConfigError(f"{key}.{name}: there is no such limit; known are {known}")
    limits = _convert(msgspec.to_builtins(common) | {name: given}, Limits, key)
    value = getattr(limits, name)
    most = 1.0 if name.endswith("_ratio") else float("inf")
    least = 0.0 if isinstance(value, float) else 1
    if not (least <= value <= most) or (least == 0.0 and value == 0.0):
        bounds = "over 0 and at most 1" if most == 1.0 else "at least 1" if least == 1 else "over 0"
        raise ConfigError(f"{key}.{name}: must be {bounds}, not {value:g}")
    return limits


def _rule(code: str, body: object, key: str) -> Rule:
    if code not in codes.ROWS and not _NUMBERS.fullmatch(code):
        raise ConfigError(
            f"{key}: there is no such code; the catalogue has xid:N, sxid:N and names as gpu_lost{codes.nearest(code)}"
        )
    rule, row = _convert(body, Rule, key), codes.row(code)
    if rule == Rule():
        raise ConfigError(f"{key}: it changes nothing: set severity, recovery, level or shadow, or leave it out")
    severity, recovery = rule.severity or row.severity, rule.recovery or row.recovery
    holds = needs_repair(severity, recovery)
    if holds and not row.condition:
        harsh = f"severity {severity} with recovery {recovery} would hold a GPU"
        raise ConfigError(f"{key}: {harsh}, but the code opens no condition: nothing would end it; use a milder one")
    if holds and LADDER[recovery] is None:
        raise ConfigError(f"{key}: recovery {recovery} would hold a GPU and has no remedy; name one that has")
    return rule


def _table(table: Table, name: str, prefix: str) -> Table:
    return _convert(table.get(name, {}), dict[str, Any], f"{prefix}{name}")


def _convert(value: object, kind: type[T], key: str) -> T:
    """``value`` as ``kind``; what msgspec says of a field is told with the whole key."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        choices = _choices(kind, path.rstrip("`")) if text.startswith("Invalid enum value") else ""
        raise ConfigError(f"{key}{path.rstrip('`')}: {text}{choices}") from error


def _choices(kind: object, path: str) -> str:
    """What a field that names one of a few may be, told at the end of an error; nothing where that is not known."""
    chosen = get_type_hints(kind).get(path.removeprefix("."), kind) if path and isinstance(kind, type) else kind
    kinds: tuple[Any, ...] = (chosen, *get_args(chosen))  # of `Level | None` the level
    for each in kinds:
        if isinstance(each, type) and issubclass(each, Enum):
            return f"; one of {', '.join(str(member.value) for member in each)}"
    return ""
