"""The numbers of the policy, each with its reason. A policy file holds differences only (``policyfile`` reads it)."""

from functools import lru_cache

import msgspec
from msgspec.structs import replace

from controller.core.fleet.pinned import Kept
from vocab.catalogue.row import CodeRow
from vocab.events import Event, Recovery, Severity
from vocab.states import Level


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The budget: what harmful acts must fit into."""

    window_s: float = 600.0  # over which new cordons are counted: longer than any bad roll-out of a probe
    cordons: int = 5  # nodes newly cordoned, wholly or in part, in one window (a breaker's absolute limit in the field)
    cordons_ratio: float = 0.66  # of the nodes of the fleet, a pool or a domain, rounded up: so one is always possible
    node_ratio: float = 0.5  # of a node's GPUs that still answer, in one window; two always: more looks like a mistake
    repairs: int = 2  # resets, reboots and power cycles at one time, up to 40 nodes; one more for each 20
    closed_ratio: float = 0.25  # of the GPUs of a manager's nodes, kept closed there for us; a node counts whole
    attempts: int = 2  # of one rung for one fault, before the next rung
    starts: int = 3  # failed starts of one deployment in a window, before it waits
    loads_node: int = 4  # replicas that load their weights at one time on one node: its disk and its links are one
    loads_model: int = 32  # ... of one deployment: they read the same files of the same store


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs from the catalogue's row for one code. ``models``: only boards with one of these words in the name.

    ``level``: the most that is done for this code. ``shadow``: nothing is done for it, only what would be is said.
    """

    severity: Severity | None = None
    recovery: Recovery | None = None
    level: Level | None = None
    shadow: bool = False
    models: tuple[str, ...] = ()

    def fits(self, board: str) -> bool:
        """Whether it is about such a board."""
        return not self.models or any(word.lower() in board.lower() for word in self.models)


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs for the nodes of one pool."""

    level: Level | None = None
    limits: Limits | None = None
    rules: dict[str, Rule] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a core decides. ``epoch`` rises when a database was restored; it leads every token."""

    epoch: int = 1
    policy: str = "builtin-1"  # version, written on every action
    level: Level = Level.REPAIR  # the highest level anywhere; a node's own level may be lower
    limits: Limits = Limits()
    pools: dict[str, Pool] = {}
    rules: dict[str, Rule] = {}
    shadowed: dict[str, str] = {}  # rules that do nothing: nobody has adopted them as they are now; how they differ
    kept: dict[str, Kept] = {}  # rules that an upgrade has changed: they act as they were adopted

    @property
    def unadopted(self) -> dict[str, str]:
        """All rules that nobody has adopted as they are now, and how they differ, by code."""
        return self.shadowed | {code: rule.words for code, rule in self.kept.items()}

    def row(self, row: CodeRow) -> CodeRow:
        """A row of the catalogue, as its rule acts."""
        rule = self.kept.get(row.code) if self.kept else None
        return row if rule is None else rule.row(row)

    def rule(self, code: str, pool: str | None, board: str) -> Rule:
        """The rule for a code there: that of the pool goes before the common one, field by field."""
        found = [self.pools[pool].rules.get(code)] if pool in self.pools else []
        rules = [rule for rule in (*found, self.rules.get(code)) if rule is not None and rule.fits(board)]
        return _joined(tuple(rules))

    def weighed(self, event: Event, pool: str | None, board: str) -> Event:
        """The event with the severity and the recovery that this policy gives it."""
        if event.code in self.kept:
            event = self.kept[event.code].weighed(event)
        if not self.rules and not self.pools:
            return event
        rule = self.rule(event.code, pool, board)
        return replace(event, severity=rule.severity or event.severity, recovery=rule.recovery or event.recovery)

    def limits_of(self, pool: str | None) -> Limits:
        """The limits within a pool; None: of the whole fleet."""
        known = self.pools.get(pool or "")
        return known.limits if known is not None and known.limits is not None else self.limits


NO_RULE = Rule()


def _joined(rules: tuple[Rule, ...]) -> Rule:
    if not rules:
        return NO_RULE
    return Rule(
        severity=next((rule.severity for rule in rules if rule.severity is not None), None),
        recovery=next((rule.recovery for rule in rules if rule.recovery is not None), None),
        level=next((rule.level for rule in rules if rule.level is not None), None),
        shadow=any(rule.shadow for rule in rules),
    )


@lru_cache(maxsize=64)
def lowest(*levels: Level) -> Level:
    """The one that allows least."""
    return min(levels, key=lambda level: list(Level).index(level))


COLD_START_S = 30.0  # after a start, how long nodes that were live are waited for before harmful acts
SILENT_GAPS = 3.0  # usual gaps without a report after which a node is unknown
SILENT_LEAST_S = 15.0  # ... but never sooner than this
EXCUSED_MOST_S = 30.0  # ... and at the latest so much later, beside the longest time that we were deaf ourselves
STALE_PERIODS = 5.0  # sample periods without a reading after which a GPU is not fresh
MEMORY_PERIODS = 5.0  # sample periods in which an agent that has lost its disk sees again what is still bad
MEMORY_LEAST_S = 300.0  # ... but never sooner: three samples of what is read every 10 s; sources get a minute
STALE_LEAST_S = 60.0  # ... but never sooner than this
OBSERVERS_FOR_LOST = 2  # others that must fail to reach a silent node before it is lost
AT_ONCE_S = 60.0  # nodes of a domain whose last reports are this close together fell silent at once
CORRELATION_S = 60.0  # faults of one GPU this close together are one incident
EVIDENCE_S = 600.0  # a decision that waited longer than this needs fresh evidence
QUEUED_S = 300.0  # ... a cordon that found no room: half a window, so that what a bad probe said once is not acted on
PROBATION_S = 600.0  # without a new condition, after validation
PROVEN_S = 120.0  # after a finished repair, how long its conditions may take to clear
START_TTL_S = 600.0  # from order to ready: weights of the largest models load in minutes
STOP_GRACE_S = 30.0  # beyond kill_s until a stop is called timed out: the node's clock started later than ours
OWNER_S = 3600.0  # an owner that is asked to end a replica: an eviction may wait long for its disruption budget
RESET_TTL_S = 300.0  # evidence up to two minutes, services that stop slowly, and the reset itself: seconds to a minute
REBOOT_TTL_S = 1200.0  # not back in 20 minutes is an outcome
VALIDATE_TTL_S = 900.0
RECUR_S = 28 * 86400.0  # within four weeks the same fault of a GPU is one history (the window of lemon studies)
RECUR_MOST = 2  # repairs that did not last, after which the same fault is for the vendor
