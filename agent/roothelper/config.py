"""The root helper's configuration: one TOML file that root alone may write. What is not in it cannot be asked for."""

import os
from pathlib import Path
from typing import Annotated

import msgspec

from agent.adapters.command import COMMAND
from agent.adapters.engines import ENGINES
from agent.roothelper.requests import FABRIC_MANAGER, OWN_UNIT, SiteUnit
from vocab.errors import ConfigError
from wire.config import load

# Who holds a GPU open on a usual node, in the order in which to stop them: who reads, then who keeps it awake.
SERVICES = (
    "dcgm-exporter.service",
    "nvidia-dcgm-exporter.service",
    "nvidia-dcgm.service",
    "nvidia-persistenced.service",
    FABRIC_MANAGER,  # only where a reset takes every GPU of the node
)


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an engine is started, and what of it an order may choose.

    ``program`` begins the command line; the rest of it is the engine's own adapter's. ``options`` are the flags that an
    order may set, by name. ``commands``, of the engine ``command`` alone: the command lines that an order may name.
    """

    program: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    groups: bool = False  # whether it may be a part of a replica on several nodes: it then speaks to other machines
    commands: tuple[tuple[str, ...], ...] = ()
    environment: dict[str, str] = {}


class ReplicaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replicas as units. ``models``: folders below which a model may lie, or a model's whole name."""

    user: str = "corral-engine"
    run_dir: Path = Path("/run/corral")  # the agent's: there lies the beat
    models: tuple[str, ...] = ("/var/lib/corral/models",)
    engines: dict[str, EngineConfig] = {}
    most: Annotated[int, msgspec.Meta(ge=1)] = 64  # that run at once


class HelperConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/repairs.md. ``user`` is the agent's; ``services`` are stopped in this order and started in reverse."""

    user: str = "corral-agent"
    agent_unit: str = OWN_UNIT  # only its main process is heard, not the replicas of the same user; "": any process
    services: tuple[str, ...] = SERVICES
    units: tuple[str, ...] = ()  # of the site, which hold replicas: whole names, or templates ("vllm@.service")
    state_dir: Path = Path("/var/lib/corral/roothelper")
    pause_file: Path = Path("/etc/corral/PAUSE")
    idle_s: float = 30.0  # systemd starts it again for the next caller
    replicas: ReplicaConfig | None = None  # without it no replica is started here


def read(path: Path) -> HelperConfig:
    """The configuration; the defaults if there is no file. Raises ConfigError, also if not root alone may write it."""
    if not path.exists():
        return HelperConfig()
    check_owner(path, "the root helper's configuration")
    config = load(path, HelperConfig)
    _check_units(f"{path}: units", config.units)
    for name, engine in config.replicas.engines.items() if config.replicas is not None else ():
        _check_engine(f"{path}: replicas.engines.{name}", name, engine)
    return config


def check_owner(path: Path, what: str) -> None:
    """Raises ConfigError if anybody but root (in a test: but whoever runs it) could change this file."""
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigError(f"{path}: {what} cannot be read: {error.strerror}") from error
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & 0o022:
        raise ConfigError(f"{path}: {what} must be root's and writable by nobody else: chown root, chmod go-w")


def _check_units(where: str, units: tuple[str, ...]) -> None:
    for unit in units:
        try:
            msgspec.convert(unit, SiteUnit)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where}: {unit!r} is not the name of a service or of its template") from error
        if unit.startswith("corral-"):
            raise ConfigError(f"{where}: {unit} is Corral's own: leave it out")


def _check_engine(where: str, name: str, engine: EngineConfig) -> None:
    if name not in ENGINES:
        raise ConfigError(f"{where}: no such engine; known are {', '.join(sorted(ENGINES))}")
    if name == COMMAND.name:
        if engine.program or not engine.commands:
            raise ConfigError(f"{where}: give commands, each a whole command line, and no program")
    elif not engine.program or engine.commands:
        raise ConfigError(f"{where}: give program, the words that begin its command line, and no commands")
    for words in engine.commands or (engine.program,):
        if not words or not Path(words[0]).is_absolute():
            raise ConfigError(f"{where}: {words[0] if words else words!r} is not the absolute path of a program")
