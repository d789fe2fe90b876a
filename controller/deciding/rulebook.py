"""What a controller works by: the policy that was adopted, the division of the fleet, what it is to keep running.

Nothing changes what is in force but an adoption: not the file that lies there, and not a catalogue that an upgrade
brings. What such a catalogue has new or changed is in shadow until it is adopted; what it has changed acts as it was.
"""

from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from msgspec.structs import replace

from controller.config import Config, DeploymentConfig, PoolConfig
from controller.core.fleet.adoption import Adoption
from controller.core.fleet.pinned import kept, not_adopted, pin
from controller.core.fleet.settings import Pool, Settings, lowest
from controller.core.fleet.stimuli import Deployment, Shaped
from controller.core.policy import policyfile
from vocab.catalogue import codes
from vocab.catalogue.row import CodeRow
from vocab.errors import ConfigError

FIRST = "corral"  # who adopts at the first start


def first(config: Config) -> Adoption:
    """What the first start adopts: the file that is configured, else what is built in. Raises ConfigError."""
    content = _file(config.policy_file) if config.policy_file is not None else ""
    drawn = draft(content, config, config.policy_file or "policy", actor=FIRST, reason="the first start")
    return replace(drawn, number=1)


def draft(content: str, config: Config, name: str = "policy", *, actor: str, reason: str) -> Adoption:
    """An adoption of this file's content with today's catalogue, not numbered yet. Raises ConfigError, a line each."""
    settings = policyfile.of(content, name)
    for pool in settings.pools:
        if pool not in config.pools:
            raise ConfigError(f"{name}: pools.{pool}: the configuration has no [pools.{pool}]: name its nodes there")
    return Adoption(
        number=0,
        version=settings.policy,
        at=0.0,
        actor=actor,
        reason=reason,
        content=content,
        settings=settings,
        pinned=pin(codes.ROWS),
    )


def in_force(config: Config, adoption: Adoption, rows: Mapping[str, CodeRow] = codes.ROWS) -> Settings:
    """The settings that an adoption puts in force: of a pool's two levels the lower counts."""
    ruled = adoption.settings.pools
    pools = {name: _pool(ruled.get(name, Pool()), pool) for name, pool in config.pools.items()}
    today = pin(rows)
    going_on = kept(adoption.pinned, today)
    return replace(
        adoption.settings,
        pools={name: pool for name, pool in pools.items() if pool != Pool()},
        shadowed={code: why for code, why in not_adopted(adoption.pinned, today).items() if code not in going_on},
        kept=going_on,
    )


def unheeded(config: Config, adoption: Adoption) -> str | None:
    """What of the configuration is not in force, and what to do about it; None if all is."""
    orphans = sorted(adoption.settings.pools.keys() - config.pools.keys())
    if orphans:
        return f"the adopted policy has rules for [pools.{orphans[0]}], which the configuration does not have any more"
    if config.policy_file is None:
        return None
    try:
        same = _file(config.policy_file) == adoption.content
    except ConfigError as error:
        return str(error)
    advice = f"see `corral policy diff {config.policy_file}`, then `corral policy adopt {config.policy_file}`"
    return None if same else f"{config.policy_file} is not what was adopted: {advice}"


def _file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"policy_file: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"policy_file: {path} is not UTF-8: {error.reason}") from error


def _pool(ruled: Pool, configured: PoolConfig) -> Pool:
    levels = [level for level in (ruled.level, configured.level) if level is not None]
    return replace(ruled, level=lowest(*levels) if levels else None)


def shaped(config: Config) -> Shaped:
    """The pools and failure domains, as the core is told of them."""
    powered = {node: None for each in config.power for node in each.covered(config.nodes_of)}
    spares = {name: pool.spares for name, pool in config.pools.items() if pool.spares}
    return Shaped(pools=config.nodes_of, domains=config.domains, powered=tuple(powered), spares=spares)


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
        nodes_per_replica=config.nodes_per_replica,
        island=config.island,
        min_ready=config.floor,
        model=config.model,
        engine=config.engine,
        options=config.options,
        managed_by=config.managed_by,
        prestop_s=config.prestop_s,
        drain_s=config.drain_s,
        kill_s=config.kill_s,
    )
