"""What a controller works by: the policy of its file, the division of the fleet, and what it is to keep running."""

from collections.abc import Iterable, Set
from pathlib import Path

from msgspec.structs import replace

from controller.config import Config, DeploymentConfig, PoolConfig
from controller.core import policyfile
from controller.core.settings import Pool, Settings, lowest
from controller.core.stimuli import Deployment, Shaped
from vocab.errors import ConfigError


def settings(config: Config) -> Settings:
    """The built-in policy with the file's differences; of a pool's two levels the lower counts. Raises ConfigError."""
    found = _file(config.policy_file) if config.policy_file is not None else Settings()
    for name in found.pools:
        if name not in config.pools:
            raise ConfigError(
                f"{config.policy_file}: pools.{name}: the configuration has no [pools.{name}] with its nodes"
            )
    pools = {name: _pool(found.pools.get(name, Pool()), pool) for name, pool in config.pools.items()}
    return replace(found, pools={name: pool for name, pool in pools.items() if pool != Pool()})


def _file(path: str) -> Settings:
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"policy_file: cannot read {path}: {error.strerror}") from error
    return policyfile.read(raw, path)


def _pool(ruled: Pool, configured: PoolConfig) -> Pool:
    levels = [level for level in (ruled.level, configured.level) if level is not None]
    return replace(ruled, level=lowest(*levels) if levels else None)


def shaped(config: Config) -> Shaped:
    """The pools and failure domains, as the core is told of them."""
    powered = {node: None for each in config.power for node in each.covered(config.nodes_of)}
    return Shaped(pools=config.nodes_of, domains=config.domains, powered=tuple(powered))


def deployments(configured: Iterable[DeploymentConfig], started: Set[str]) -> list[Deployment]:
    """The deployments of the configuration, and an end for each that was ``started`` and is no longer in it."""
    kept = [_deployment(each) for each in configured]
    gone = sorted(started - {each.name for each in kept})
    return kept + [Deployment(name=name, replicas=0, min_ready=0) for name in gone]


def _deployment(config: DeploymentConfig) -> Deployment:
    return Deployment(
        name=config.name,
        replicas=config.replicas,
        gpus_per_replica=config.gpus_per_replica,
        min_ready=config.floor,
        model=config.model,
        engine=config.engine,
        options=config.options,
        managed_by=config.managed_by,
        prestop_s=config.prestop_s,
        drain_s=config.drain_s,
        kill_s=config.kill_s,
    )
