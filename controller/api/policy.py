"""What the policy says now, as the interface shows it: levels, limits, and each code's rule with what differs."""

from collections.abc import Mapping

import msgspec

from controller.core.fleet.adoption import Adoption
from controller.core.fleet.ladder import needs_repair
from controller.core.fleet.precision import Precision
from controller.core.fleet.settings import Limits, Pool, Rule, Settings
from controller.core.fleet.views import View
from controller.deciding import rulebook
from controller.deciding.mind import Mind
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Severity
from vocab.lines import NoteLine
from vocab.states import Level


class RuleInForce(msgspec.Struct, frozen=True, kw_only=True):
    """What is done for a code where no pool says otherwise.

    ``holds``: it takes its GPU (or node) out of service. ``level``: the most that is done for it, if the policy says.
    ``shadow``: only what would be done is said, by the policy, by itself, or until it is adopted as it is now.
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


class AdoptionView(msgspec.Struct, frozen=True, kw_only=True):
    """The ``number``-th adoption. ``version`` is the policy's own name; ``reverts``: the one that it goes back to."""

    number: int
    version: str
    at: float
    actor: str
    reason: str
    reverts: int | None = None


class PolicyInForce(msgspec.Struct, frozen=True, kw_only=True):
    """The policy now. ``level`` is the ceiling of the fleet, ``nodes`` the level of each.

    In shadow are the rules that fell back by themselves (``demoted``), and those that are not as they were adopted
    (``shadowed``: by code, how they differ; those that have changed act as they were adopted). ``unheeded``: what the
    configuration says and is not in force.
    """

    version: str
    adopted: AdoptionView | None
    level: Level
    paused: bool
    nodes: dict[str, Level]
    limits: Limits
    differences: dict[str, Rule]
    pools: dict[str, PoolInForce]
    domains: dict[str, tuple[str, ...]]
    demoted: tuple[NoteLine, ...]
    shadowed: dict[str, str]
    precision: tuple[Precision, ...]
    unheeded: str | None
    rules: tuple[RuleInForce, ...]


def in_force(mind: Mind, view: View, rows: Mapping[str, CodeRow]) -> PolicyInForce:
    """The policy as the core has it."""
    settings = mind.settings
    demoted = {note.rule for note in view.demoted}
    return PolicyInForce(
        version=settings.policy,
        adopted=None if mind.adopted is None else adoption_view(mind.adopted),
        level=settings.level,
        paused=view.paused,
        nodes={node.node: Level(node.level) for node in view.nodes},
        limits=settings.limits,
        differences=settings.rules,
        pools={name: _pool(settings, name, nodes) for name, nodes in mind.shape.pools.items()},
        domains=mind.shape.domains,
        demoted=view.demoted,
        shadowed=settings.unadopted,
        precision=view.precision,
        unheeded=None if mind.adopted is None else rulebook.unheeded(mind.config, mind.adopted),
        rules=tuple(
            _rule(settings.row(row), settings.rules.get(code), off=code in demoted or code in settings.shadowed)
            for code, row in rows.items()
        ),
    )


def adoption_view(adoption: Adoption) -> AdoptionView:
    """An adoption as lists show it."""
    return AdoptionView(
        number=adoption.number,
        version=adoption.version,
        at=adoption.at,
        actor=adoption.actor,
        reason=adoption.reason,
        reverts=adoption.reverts,
    )


def _pool(settings: Settings, name: str, nodes: tuple[str, ...]) -> PoolInForce:
    known = settings.pools.get(name, Pool())
    return PoolInForce(nodes=nodes, level=known.level, limits=settings.limits_of(name), differences=known.rules)


def _rule(row: CodeRow, differing: Rule | None, *, off: bool) -> RuleInForce:
    rule = differing or Rule()
    severity, recovery = rule.severity or row.severity, rule.recovery or row.recovery
    return RuleInForce(
        code=row.code,
        severity=severity,
        recovery=recovery,
        holds=row.condition and not row.blocks and needs_repair(severity, recovery),
        level=rule.level,
        shadow=rule.shadow or off,
        differs=differing is not None,
        models=rule.models,
    )
