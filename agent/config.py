"""The agent's configuration: one TOML file, read once. An unknown key or a wrong unit stops the start."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from vocab.errors import ConfigError
from vocab.states import Level
from wire.config import load, split_address
from wire.tls import Tls

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]

LEAST_SPOOL_BYTES = 64 * 1024  # room for the events of one bad minute


class Plugin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A check of the node's owner (docs/plugins.md): a program by its absolute path, and its arguments."""

    name: Name
    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    period_s: Annotated[float, msgspec.Meta(ge=1)] = 60.0
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/install.md. Paths are absolute or relative to where the agent runs.

    ``virtual`` (for example "8xH100") makes this a virtual node; without it the real driver is read.
    ``level`` is the most that automation may do on this node, whatever the controller allows.
    """

    node: str
    controller: str
    state_dir: Path
    run_dir: Path
    listen: str = "127.0.0.1:7410"
    level: Level = Level.OBSERVE
    virtual: str | None = None
    nvml_library: Path | None = None
    dcgm: str = "auto"  # or off, embedded, HOST:PORT, unix://PATH of a host engine
    dcgm_bindings: Path | None = None  # the folder of dcgm_agent.py; empty: where DCGM 3 and 4 put it
    dcgm_profiling: Literal["auto", "on", "off"] = "auto"  # auto: only on boards where it disturbs no other tool
    dcgm_exporter: str | None = None  # the URL of its metrics, where one runs: http://127.0.0.1:9400/metrics
    kernel_log: Literal["auto", "kmsg", "journal"] = "auto"  # auto: the journal where kmsg may not be read
    dcgm_names: bool = False  # /metrics also under the names and labels of NVIDIA's dcgm-exporter
    kmsg: Path = Path("/dev/kmsg")
    network_ports: tuple[str, ...] = ()  # those that have to be up; all others count if they had a link in this boot
    replica_base_port: Annotated[int, msgspec.Meta(ge=1, le=65000)] = 7430
    replica_manager: Literal["process", "systemd"] = "process"  # systemd: units of another user, by the root helper
    replica_group: str = "corral-engine"  # of the units' user, which writes its beat
    replica_program: tuple[str, ...] = ()  # takes the engine's flags in its place; empty: this Python's own engine
    diag_program: tuple[str, ...] = ()  # measures in active checks; empty: this Python's own engine (docs/diag.md)
    observe_replicas: bool = True  # look for engines on this node's GPUs that Corral did not start
    spool_limit_bytes: Annotated[int, msgspec.Meta(ge=LEAST_SPOOL_BYTES)] = 16 * 2**20
    recording_limit_bytes: Annotated[int, msgspec.Meta(ge=0)] = 16 * 2**20  # of raw observations; 0: none are kept
    plugins: tuple[Plugin, ...] = ()
    helper_socket: Path = Path("/run/corral-roothelper.sock")  # of the root helper; without it nothing is repaired
    pause_file: Path = Path("/etc/corral/PAUSE")
    token_file: Path | None = None  # what our own API asks for
    controller_token_file: Path | None = None  # what the controller is shown; left out, token_file
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None  # the authority of the controller's certificate
    log_json: bool = False

    @property
    def address(self) -> str:
        """Where this agent is reached, as a URL."""
        return f"{'https' if self.tls_cert else 'http'}://{self.listen}"

    @property
    def tls(self) -> Tls:
        """What the agent shows, to callers and to the controller, and whom it trusts."""
        return Tls(cert=self.tls_cert, key=self.tls_key, ca=self.tls_ca)


def read(path: Path) -> AgentConfig:
    """The configuration at ``path``. Raises ConfigError naming file, key and rule."""
    config = load(path, AgentConfig)
    if not config.node or "/" in config.node or len(config.node) > 253 or not config.node.isprintable():
        raise ConfigError(
            f"{path}: node: {config.node!r} is not a printable name of 1 to 253 characters without a slash"
        )
    if not config.controller.startswith(("http://", "https://")) or not urlsplit(config.controller).hostname:
        raise ConfigError(
            f"{path}: controller: {config.controller!r} must be like http://HOST:7400 or https://HOST:7400"
        )
    if (config.tls_cert is None) != (config.tls_key is None):
        raise ConfigError(f"{path}: tls_cert and tls_key: set both or none")
    if config.replica_manager == "systemd" and (config.virtual is not None or config.replica_program):
        why = "a virtual node has none" if config.virtual is not None else "replica_program is the root helper's to say"
        raise ConfigError(f"{path}: replica_manager: units of systemd cannot be had: {why} (see docs/isolation.md)")
    if config.dcgm_exporter is not None and not urlsplit(config.dcgm_exporter).hostname:
        raise ConfigError(f"{path}: dcgm_exporter: {config.dcgm_exporter!r} must be like http://127.0.0.1:9400/metrics")
    try:
        split_address(config.listen)
        _check_plugins(config.plugins)
        _check_dcgm(config.dcgm)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return config


def _check_dcgm(engine: str) -> None:
    if engine in {"auto", "off", "embedded"} or engine.startswith("unix:///"):
        return
    if engine.startswith("unix:"):
        raise ConfigError(f"dcgm: {engine!r} must be like unix:///run/nvidia-dcgm.socket")
    split_address(engine, "dcgm")


def _check_plugins(plugins: tuple[Plugin, ...]) -> None:
    names = [plugin.name for plugin in plugins]
    for plugin in plugins:
        if names.count(plugin.name) > 1:
            raise ConfigError(f"plugins: two are called {plugin.name!r}")
        if not Path(plugin.command[0]).is_absolute():
            raise ConfigError(f"plugins: {plugin.name}: command: {plugin.command[0]!r} is not an absolute path")
        if plugin.timeout_s > plugin.period_s:
            raise ConfigError(f"plugins: {plugin.name}: timeout_s: it must not be longer than period_s")
