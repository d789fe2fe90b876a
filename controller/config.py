"""What a controller is told at start: one frozen struct, read from TOML. An unknown key is an error."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from controller.adapters.config import HookConfig, KubernetesConfig, SlurmConfig
from controller.core.fleet.lemons import Thresholds
from controller.core.fleet.stimuli import Managing
from controller.door.limits import PER_S
from controller.notify.config import AlertmanagerConfig, WebhookConfig
from controller.power.config import PowerConfig
from controller.store.dialects import Database, Postgres, Sqlite, check_dsn
from vocab.errors import ConfigError
from vocab.states import Level
from wire.config import is_loopback, load, split_address
from wire.tls import Tls

Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
NODE_GPUS = 8  # nodes have at most so many
GpuCount = Annotated[int, msgspec.Meta(ge=1, le=1024)]
NodeCount = Annotated[int, msgspec.Meta(ge=1, le=128)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Node = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")]

ENGINES = ("torch", "vllm", "sglang", "command")  # agent/adapters
MANAGERS = ("corral", "systemd-unit", "kubernetes", "slurm", "hook", "none")


class DeploymentConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model to be kept running. ``name`` is also the ``model`` that clients ask for."""

    name: Name
    replicas: Count = 1
    gpus_per_replica: GpuCount = 1  # in all
    nodes_per_replica: NodeCount = 1  # more: a group, with equally many of its GPUs on each node
    island: Literal["preferred", "required"] = "preferred"  # all its GPUs of a node in one NVLink island
    min_ready: Count | None = None  # replicas that must stay ready through any repair; default: 1, 0 without replicas
    model: str
    engine: str = "torch"
    options: dict[str, Any] = {}  # the engine's own flags, by their names; of ``command`` the words of its command line
    managed_by: str = "corral"  # who starts its replicas; of another's, only what is found on nodes counts
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
        if self.managed_by not in MANAGERS:
            raise ValueError(
                f"managed_by = {self.managed_by!r} of deployment {self.name!r}: must be one of {', '.join(MANAGERS)}"
            )
        if self.engine == "command" and not self.options.get("command"):
            raise ValueError(
                f'options.command of deployment {self.name!r} is missing: give words, as ["my-server", "{{port}}"]'
            )
        self._check_shape()
        if not self.model:
            raise ValueError(f"model of deployment {self.name!r} is empty: name a model or a folder")

    def _check_shape(self) -> None:
        gpus, nodes = self.gpus_per_replica, self.nodes_per_replica
        if gpus % nodes or gpus // nodes > NODE_GPUS:
            raise ValueError(
                f"gpus_per_replica = {gpus} of deployment {self.name!r}: on {nodes} node{'s' * (nodes > 1)}"
                f" (nodes_per_replica) it must be a multiple of {nodes}, with at most {NODE_GPUS} on each"
            )
        if nodes > 1 and (self.engine == "torch" or self.managed_by != "corral"):
            raise ValueError(
                f"nodes_per_replica = {nodes} of deployment {self.name!r}: several nodes are for the engines"
                ' vllm, sglang and command with managed_by = "corral"'
            )

    @property
    def floor(self) -> int:
        """The least number of ready replicas that a repair may leave."""
        return min(1, self.replicas) if self.min_ready is None else self.min_ready


class PoolConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes for which one level, one budget and one set of rules count; as ``fleet`` of a recording has it."""

    nodes: Annotated[tuple[Node, ...], msgspec.Meta(min_length=1)]
    level: Level | None = None  # the most that automation may do there
    spares: Count = 0  # free GPUs that only replacements take


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration of ``python -m controller``."""

    listen: str = "127.0.0.1:7400"
    state_dir: str
    database: str | None = None  # postgresql://ROLE@HOST/NAME; without one a SQLite file in state_dir
    database_password_file: str | None = None
    pooler: bool = False  # the database is reached through pgbouncer in transaction mode
    name: Name | None = None  # of this controller among several; the machine's, if it is left out
    deployments: tuple[DeploymentConfig, ...] = ()
    policy_file: str | None = None  # differences from the built-in policy
    pools: dict[Name, PoolConfig] = {}  # by name; a node is in one pool at most
    domains: dict[
        Name, Annotated[tuple[Node, ...], msgspec.Meta(min_length=1)]
    ] = {}  # what fails together: racks, switches
    slurm: SlurmConfig | None = None  # others' work goes on through these; without its table a manager is left alone
    kubernetes: KubernetesConfig | None = None
    hook: HookConfig | None = None
    power: tuple[PowerConfig, ...] = ()  # nodes whose power the controller may cycle, and how; none: a person does it
    webhooks: tuple[WebhookConfig, ...] = ()  # who is told of incidents, holds and what waits for people
    alertmanager: AlertmanagerConfig | None = None  # where alerts of nodes under maintenance are silenced
    gateways: tuple[str, ...] = ()  # host:port (or https://host:port) of each, for Prometheus' service discovery
    token_file: str | None = None
    agents_token_file: str | None = None  # the token that agents ask for, to fetch what they recorded
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None  # the authority of the agents' certificates, where it is not one that this machine trusts
    tls_client_ca: str | None = None  # whoever connects shows a certificate of this authority; a node's names the node
    tls_client_required: bool = True  # false: people and Prometheus may come without one, nodes never
    requests_per_s: Annotated[float, msgspec.Meta(ge=0)] = PER_S  # of one token from one address; 0: as many as come
    lemons: Thresholds = Thresholds()  # from where on a card stands out among those of its board
    log_json: bool = False
    keep_days: Annotated[float, msgspec.Meta(gt=0)] = 30.0  # finished history older than this is pruned

    def __post_init__(self) -> None:
        names = [deployment.name for deployment in self.deployments]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"deployments: the name {twice[0]!r} is used twice: names must differ")
        for key in ("state_dir", "policy_file", "database_password_file"):
            path = getattr(self, key)
            if path is not None and not path.startswith("/"):
                raise ValueError(f"{key} = {path!r} is not an absolute path")
        if self.database is not None:
            check_dsn(self.database)
        elif self.database_password_file is not None or self.pooler:
            raise ValueError('database_password_file and pooler belong to database = "postgresql://…": set that, too')
        hooks = [webhook.name for webhook in self.webhooks]
        if len(set(hooks)) < len(hooks):
            raise ValueError("webhooks: a name is used twice: names must differ")
        _check_division(self.pools, self.domains)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key belong together: set both or neither")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("tls_client_ca asks callers for certificates: set tls_cert and tls_key, too")

    @property
    def managing(self) -> tuple[Managing, ...]:
        """The managers that Corral works through, as they are before they have answered."""
        return tuple(each.managing for each in (self.slurm, self.kubernetes, self.hook) if each is not None)

    @property
    def nodes_of(self) -> dict[str, tuple[str, ...]]:
        """The nodes of each pool."""
        return {name: pool.nodes for name, pool in self.pools.items()}

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the controller."""
        return is_loopback(split_address(self.listen)[0])

    @property
    def place(self) -> Database:
        """Where everything is stored."""
        if self.database is None:
            return Sqlite(Path(self.state_dir) / "controller.db")
        secret = Path(self.database_password_file) if self.database_password_file else None
        return Postgres(self.database, secret, self.pooler)

    @property
    def tls(self) -> Tls:
        """What the controller shows and whom it trusts."""
        cert, key, authority, callers = (
            Path(file) if file else None for file in (self.tls_cert, self.tls_key, self.tls_ca, self.tls_client_ca)
        )
        return Tls(cert=cert, key=key, ca=authority, client_ca=callers, client_required=self.tls_client_required)

    @property
    def agents_token_path(self) -> Path | None:
        """Where the agents' token lies, if they ask for one."""
        return Path(self.agents_token_file) if self.agents_token_file else None

    @property
    def token_path(self) -> Path | None:
        """Where the token lies, if one is asked for."""
        return Path(self.token_file) if self.token_file else None


def _check_division(pools: dict[str, PoolConfig], domains: dict[str, tuple[str, ...]]) -> None:
    """A node is in one pool; nobody is named twice in one list."""
    for key, nodes in [(f"domains.{name}", nodes) for name, nodes in domains.items()]:
        _check_once(key, nodes)
    pool_of: dict[str, str] = {}
    for name, pool in pools.items():
        _check_once(f"pools.{name}.nodes", pool.nodes)
        for node in pool.nodes:
            if pool_of.setdefault(node, name) != name:
                raise ValueError(f"pools.{name}.nodes: {node!r} is in pool {pool_of[node]!r} already: one pool a node")


def _check_once(key: str, nodes: tuple[str, ...]) -> None:
    twice = sorted({node for node in nodes if nodes.count(node) > 1})
    if twice:
        raise ValueError(f"{key}: {twice[0]!r} is named twice")


def read(path: Path) -> Config:
    """The configuration at ``path``. Raises ConfigError naming the key and the rule."""
    config = load(path, Config)
    try:
        split_address(config.listen)
        for gateway in config.gateways:
            split_address(gateway.removeprefix("https://").removeprefix("http://"), "gateways")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return config
