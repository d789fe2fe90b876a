"""What the policy says now, as the interface shows it: levels, limits, and each code's rule with what differs."""

from collections.abc import Mapping

import msgspec

from controller.core.ladder import needs_repair
from controller.core.settings import Limits, Pool, Rule, Settings
from controller.core.stimuli import Shaped
from controller.core.views import View
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Severity
from vocab.lines import NoteLine
from vocab.states import Level


class RuleInForce(msgspec.Struct, frozen=True, kw_only=True):
    """What is done for a code where no pool says otherwise.

    ``holds``: it takes its GPU (or node) out of service. ``level``: the most that is done for it, if the policy says.
    ``differs``: the policy file changes the catalogue's row (on the boards of ``models``, if it names some).
    """

    code: str
    severity: Severity
    recovery: Recovery
    holds: bool
    level: Level | None = None
    shadow: bool = False
    differs: bool = False
    models: tuple[str, ...] = ()


class PoolInForce(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: its nodes and what differs for them."""

    nodes: tuple[str, ...]
    level: Level | None
    limits: Limits
    differences: dict[str, Rule]


class PolicyInForce(msgspec.Struct, frozen=True, kw_only=True):
    """The policy now. ``level`` is the ceiling of the fleet, ``nodes`` the level of each; ``demoted``: in shadow."""

    version: str
    level: Level
    paused: bool
    nodes: dict[str, Level]
    limits: Limits
    differences: dict[str, Rule]
    pools: dict[str, PoolInForce]
    domains: dict[str, tuple[str, ...]]
    demoted: tuple[NoteLine, ...]
    rules: tuple[RuleInForce, ...]


def in_force(settings: Settings, shape: Shaped, view: View, rows: Mapping[str, CodeRow]) -> PolicyInForce:
    """The policy as the core has it."""
    return PolicyInForce(
        version=settings.policy,
        level=settings.level,
        paused=view.paused,
        nodes={node.node: Level(node.level) for node in view.nodes},
        limits=settings.limits,
        differences=settings.rules,
        pools={name: _pool(settings, name, nodes) for name, nodes in shape.pools.items()},
        domains=shape.domains,
        demoted=view.demoted,
        rules=tuple(_rule(row, settings.rules.get(code)) for code, row in rows.items()),
    )


def _pool(settings: Settings, name: str, nodes: tuple[str, ...]) -> PoolInForce:
    known = settings.pools.get(name, Pool())
    return PoolInForce(nodes=nodes, level=known.level, limits=settings.limits_of(name), differences=known.rules)


def _rule(row: CodeRow, differing: Rule | None) -> RuleInForce:
    rule = differing or Rule()
    severity, recovery = rule.severity or row.severity, rule.recovery or row.recovery
    return RuleInForce(
        code=row.code,
        severity=severity,
        recovery=recovery,
        holds=row.condition and not row.blocks and needs_repair(severity, recovery),
        level=rule.level,
        shadow=rule.shadow,
        differs=differing is not None,
        models=rule.models,
    )
