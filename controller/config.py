"""What a controller is told at start: one frozen struct, read from TOML. An unknown key is an error."""

from pathlib import Path
from typing import Annotated

import msgspec

from vocab.errors import ConfigError
from wire.config import is_loopback, load, split_address

Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
GpuCount = Annotated[int, msgspec.Meta(ge=1, le=8)]  # a replica lives on one node, and nodes have at most 8
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")]

ENGINES = ("torch",)


class DeploymentConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model to be kept running. ``name`` is also the ``model`` that clients ask for."""

    name: Name
    replicas: Count = 1
    gpus_per_replica: GpuCount = 1
    min_ready: Count | None = None  # replicas that must stay ready through any repair; default: 1, 0 without replicas
    model: str
    engine: str = "torch"
    prestop_s: Seconds = 0.0
    drain_s: Seconds = 120.0
    kill_s: Seconds = 10.0

    def __post_init__(self) -> None:
        if self.min_ready is not None and self.min_ready > self.replicas:
            raise ValueError(
                f"min_ready = {self.min_ready} is more than replicas = {self.replicas} of deployment {self.name!r}:"
                " it must be at most replicas"
            )
        if self.engine not in ENGINES:
            raise ValueError(
                f"engine = {self.engine!r} of deployment {self.name!r}: must be one of {', '.join(ENGINES)}"
            )
        if not self.model:
            raise ValueError(f"model of deployment {self.name!r} is empty: name a model or a folder")

    @property
    def floor(self) -> int:
        """The least number of ready replicas that a repair may leave."""
        return min(1, self.replicas) if self.min_ready is None else self.min_ready


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration of ``python -m controller``."""

    listen: str = "127.0.0.1:7400"
    state_dir: str
    deployments: tuple[DeploymentConfig, ...] = ()
    gateways: tuple[str, ...] = ()  # host:port of each gateway, for Prometheus' service discovery
    token_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    log_json: bool = False
    keep_days: Annotated[float, msgspec.Meta(gt=0)] = 30.0  # finished history older than this is pruned

    def __post_init__(self) -> None:
        names = [deployment.name for deployment in self.deployments]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"deployments: the name {twice[0]!r} is used twice: names must differ")
        if not self.state_dir.startswith("/"):
            raise ValueError(f"state_dir = {self.state_dir!r} is not an absolute path")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key belong together: set both or neither")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the controller."""
        return is_loopback(split_address(self.listen)[0])

    @property
    def database(self) -> Path:
        """The one file that holds everything."""
        return Path(self.state_dir) / "controller.db"

    @property
    def token_path(self) -> Path | None:
        """Where the token lies, if one is asked for."""
        return Path(self.token_file) if self.token_file else None


def read(path: Path) -> Config:
    """The configuration at ``path``. Raises ConfigError naming the key and the rule."""
    config = load(path, Config)
    try:
        split_address(config.listen)
        for gateway in config.gateways:
            split_address(gateway, "gateways")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return config
