"""/metrics of the controller: the fleet as the last stored turn has it, and how the controller does itself."""

import asyncio
import math
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from controller.core.fleet.views import ReplicaView, View
from controller.store.change import KIND
from controller.telling.faults import FaultCounts
from controller.telling.series import NodeSeries, Told, by_node, opened
from vocab.events import Severity
from vocab.lines import ActionLine, AnyLine, HoldLine
from vocab.metrics import CONTROLLER, Kind
from vocab.states import REPAIRS, ActionKind, ActionState, Health, NodeState, Phase, ReplicaState
from wire.exposition import Exposition

# every word of vocab.states.shown, so that a state without GPUs reads 0 and not nothing
GPU_STATES = (
    *(phase.value for phase in Phase if phase is not Phase.IN_SERVICE),
    *(health.value for health in Health),
    "unknown",
    "cordoned",
)
SCOPES = ("fleet", "pool", "node", "file")  # of a pause
OWN = frozenset(  # what each controller says of itself; all other gauges are of the fleet
    {
        "corral_controller_build_info",
        "corral_node_report_age_seconds",
        "corral_node_clock_ahead_seconds",
        "corral_store_up",
        "corral_store_seq",
        "corral_watch_readers",
        "corral_leader",
        "corral_lease_age_seconds",
        "corral_follower_lag_seconds",
        "corral_bundle_bytes",
        "corral_bundle_limit_bytes",
    }
)
SHARES = ("corral_rule_precision_ratio", "corral_rule_precision_low_ratio", "corral_rule_precision_high_ratio")
OWNERS = ("agent", "operator", "policy", "other")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a scrape shows beside the counters."""

    view: View | None
    report_ages_s: dict[str, float]
    readers: int
    seq: int
    ahead_s: dict[str, float] = {}  # how far each node's clock is before ours
    decides: bool = True
    lease_age_s: float | None = None  # None: there is no lease
    behind_s: float | None = None  # None: it decides

    def by_node(self) -> dict[str, dict[str, float]]:
        """The metrics with a value for each node that reports here."""
        return {
            "corral_node_report_age_seconds": self.report_ages_s,
            "corral_node_clock_ahead_seconds": self.ahead_s,
        }


class Load(msgspec.Struct, frozen=True):
    """How busy a deployment is. ``kv_ratio``: the mean of its ready replicas, None if none says it."""

    waiting: int
    running: int
    kv_ratio: float | None

    @classmethod
    def of(cls, mine: Sequence[ReplicaView]) -> "Load":
        """That of a deployment with these replicas."""
        told = [each.kv_ratio for each in mine if each.ready and each.kv_ratio is not None]
        return cls(
            waiting=sum(each.waiting for each in mine),
            running=sum(each.running for each in mine),
            kv_ratio=sum(told) / len(told) if told else None,
        )


class Export(Exposition):
    """The controller's registry. ``snapshot`` is asked at each scrape."""

    def __init__(self, version: str) -> None:
        super().__init__(CONTROLLER)
        self._series = NodeSeries()
        self._scraping = asyncio.Lock()
        self.snapshot: Callable[[], Snapshot | None] = lambda: None
        self.gauge("corral_controller_build_info").labels(version).set(1)
        batches = self.counter("corral_ingest_batches_total")
        self._batches = {outcome: batches.labels(outcome) for outcome in ("stored", "malformed", "refused")}
        for outcome in ("stored", "repeated"):
            self.counter("corral_ingest_items_total").labels(outcome)
        for kind in KIND.values():
            self.counter("corral_lines_total").labels(kind)
        for of in ActionKind:
            for state in ActionState:
                self.counter("corral_action_moves_total").labels(of.value, state.value)
        self._faults = FaultCounts(
            self.counter("corral_incidents_total"),
            self.histogram("corral_incident_seconds"),
            self.histogram("corral_gpu_phase_seconds"),
            self.counter("corral_repair_attempts_total"),
        )

    async def scrape(self) -> tuple[bytes, str]:
        """As ``render``; what grows with the fleet is written beside the loop, so that reports go on meanwhile."""
        async with self._scraping:
            snapshot = self.snapshot()
            return self._text(snapshot, await asyncio.to_thread(self._told, snapshot))

    def render(self) -> tuple[bytes, str]:
        """The body and content type of a scrape."""
        snapshot = self.snapshot()
        return self._text(snapshot, self._told(snapshot))

    def _told(self, snapshot: Snapshot | None) -> tuple[Told | None, dict[str, bytes]]:
        """Of the nodes, and series by their metric. It changes nothing that the loop uses."""
        if snapshot is None:
            return None, {}
        by_metric = {name: by_node(name, values) for name, values in snapshot.by_node().items()}
        view = snapshot.view
        if view is None:
            return None, by_metric
        return self._series.of(view.nodes), by_metric | {"corral_condition_opened_timestamp_seconds": opened(view)}

    def _text(self, snapshot: Snapshot | None, told: tuple[Told | None, dict[str, bytes]]) -> tuple[bytes, str]:
        if snapshot is not None:
            nodes, by_metric = told
            self._show(snapshot, nodes)
            self.written |= by_metric
        return super().render()

    def batch(self, outcome: str, seconds: float) -> None:
        """A batch was answered: stored, malformed or refused."""
        self._batches[outcome].inc()
        self.histogram("corral_ingest_seconds").observe(seconds)

    def records(self, stored: int, repeated: int) -> None:
        """Spool records of a batch."""
        self.counter("corral_ingest_items_total").labels("stored").inc(stored)
        self.counter("corral_ingest_items_total").labels("repeated").inc(repeated)

    def committed(self, seconds: float, lines: Sequence[AnyLine]) -> None:
        """A transaction is on disk."""
        self.histogram("corral_store_commit_seconds").observe(seconds)
        for kind, count in Tally(KIND[type(line)] for line in lines).items():
            self.counter("corral_lines_total").labels(kind).inc(count)
        self._faults.take(lines)
        for line in lines:
            if isinstance(line, ActionLine):
                self.counter("corral_action_moves_total").labels(line.of.value, line.state.value).inc()

    def store_up(self, *, up: bool) -> None:
        """Whether the store takes writes."""
        self.gauge("corral_store_up").set(up)

    def asked(self, manager: str, of: str, outcome: str) -> None:
        """A manager was asked to close, open or end something: done, failed (it is asked again) or refused."""
        self.counter("corral_manager_acts_total").labels(manager, of, outcome).inc()

    def store_failed(self) -> None:
        """The store refused a transaction."""
        self.counter("corral_store_failures_total").inc()

    def was_deaf(self, seconds: float) -> None:
        """For so long nothing was read of what arrived."""
        self.counter("corral_controller_deaf_seconds_total").inc(seconds)

    def core_failed(self) -> None:
        """The Core raised what it never should."""
        self.counter("corral_core_failures_total").inc()

    def dropped(self) -> None:
        """A stream's reader was too slow."""
        self.counter("corral_watch_dropped_total").inc()

    def noticed(self, webhook: str, outcome: str) -> None:
        """A notice was sent, refused by its receiver (and dropped), or failed (and is sent again)."""
        self.counter("corral_webhook_notices_total").labels(webhook, outcome).inc()

    def lemons(self, by_board: Mapping[str, int]) -> None:
        """How many cards are lemons now, by board."""
        self._replace("corral_lemons", {(board,): count for board, count in by_board.items()})

    def inbox_failed(self, count: int) -> None:
        """How much of what reached other controllers could not be thought about, and is kept aside."""
        self.gauge("corral_inbox_failed").set(count)

    def bundled(self, outcome: str) -> None:
        """An evidence bundle was written, or that failed."""
        self.counter("corral_bundles_total").labels(outcome).inc()

    def bundles(self, kept: int, limit: int) -> None:
        """How many bytes of bundles are kept, and how many may be."""
        self.gauge("corral_bundle_bytes").set(kept)
        self.gauge("corral_bundle_limit_bytes").set(limit)

    def job(self, job: str, outcome: str) -> None:
        """A housekeeping job ended: done, failed, skipped or missed."""
        self.counter("corral_jobs_total").labels(job, outcome).inc()

    def _show(self, snapshot: Snapshot, nodes: Told | None) -> None:
        self.gauge("corral_store_seq").set(snapshot.seq)
        self.gauge("corral_watch_readers").set(snapshot.readers)
        self.gauge("corral_leader").set(snapshot.decides)
        self.gauge("corral_lease_age_seconds").set(_or_none(snapshot.lease_age_s))
        self.gauge("corral_follower_lag_seconds").set(_or_none(snapshot.behind_s))
        if snapshot.view is not None and nodes is not None:
            self._show_fleet(snapshot.view, nodes)
        elif not snapshot.decides:
            self._hide_fleet()

    def _hide_fleet(self) -> None:
        """The fleet is told by the controller that decides, once: sums over controllers stay true."""
        for row in CONTROLLER:
            if row.kind in {Kind.GAUGE, Kind.INFO} and row.name not in OWN:
                gauge = self.gauge(row.name)
                self.written.pop(row.name, None)
                if row.labels:
                    gauge.clear()
                else:
                    gauge.set(math.nan)

    def _show_fleet(self, view: View, nodes: Told) -> None:
        self.gauge("corral_paused").set(view.paused)
        self._tally("corral_pauses", ((each.scope,) for each in view.pauses), ((scope,) for scope in SCOPES))
        self._replace("corral_gpus", _by_state(GPU_STATES, nodes.gpus))
        names = {each.replica: each.deployment for each in view.replicas}
        gpus = [gpu for node in view.nodes for gpu in node.gpus] if view.counts.get("stranded", 1) else []
        stranded = ((names.get(gpu.replica or "", ""),) for gpu in gpus if gpu.stranded)
        self._tally("corral_gpus_stranded", stranded, ((each.name,) for each in view.deployments))
        self.written["corral_gpu_state"], self.written["corral_node_info"] = nodes.gpu_states, nodes.node_info
        self._replace("corral_nodes", _by_state([state.value for state in NodeState], nodes.nodes))
        self._tally("corral_holds", ((owner_class(hold.owner),) for hold in view.holds), ((name,) for name in OWNERS))
        self._replace("corral_oldest_hold_timestamp_seconds", _oldest(view.holds))
        self._replace("corral_manager_up", {(each.name,): each.ok for each in view.managers})
        self._replace("corral_manager_nodes", {(each.name,): each.nodes for each in view.managers})
        self._replace("corral_manager_nodes_closed", {(each.name,): each.closed for each in view.managers})
        self._replace("corral_manager_nodes_of_others", {(each.name,): each.others for each in view.managers})
        self._show_rules(view)
        self._tally("corral_conditions_open", ((each.code, each.severity.value) for each in view.conditions))
        self._tally(
            "corral_incidents_open",
            ((incident.severity.value,) for incident in view.incidents),
            ((severity.value,) for severity in Severity),
        )
        self._show_actions(view)
        self._show_deployments(view)

    def _show_actions(self, view: View) -> None:
        """What is under way, since when, and what waits."""
        self._tally("corral_actions", ((action.of.value, action.state.value) for action in view.actions))
        since: dict[tuple[str, ...], float] = {}
        for action in view.actions:
            key = (action.of.value, action.state.value)
            since[key] = min(action.at, since.get(key, action.at))
        self._replace("corral_oldest_action_timestamp_seconds", since)
        waiting = (each for each in view.actions if each.of in REPAIRS and each.state is ActionState.WAITING)
        awaited = (("person" if each.budget is None else "budget",) for each in waiting)
        self._tally("corral_repairs_waiting", awaited, (("person",), ("budget",)))
        self._replace("corral_budget_used", {(name,): each.used for name, each in view.budgets.items()})
        self._replace("corral_budget_limit", {(name,): each.limit for name, each in view.budgets.items()})
        self.gauge("corral_incidents_halted").set(len(view.halted))

    def _show_deployments(self, view: View) -> None:
        """What an autoscaler goes by: how many replicas there are and should be, and how busy they are."""
        replicas = defaultdict[str, list[ReplicaView]](list)
        for replica in view.replicas:
            replicas[replica.deployment].append(replica)
        load = {each.name: Load.of(replicas[each.name]) for each in view.deployments}
        self._replace("corral_replicas_ready", {(each.name,): each.ready for each in view.deployments})
        self._replace("corral_replicas_wanted", {(each.name,): each.wanted for each in view.deployments})
        starting = Tally((each.deployment,) for each in view.replicas if each.state == ReplicaState.STARTING)
        self._replace("corral_replicas_starting", {(name,): starting[(name,)] for name in load})
        self._replace("corral_replicas_floor", {(each.name,): each.min_ready for each in view.deployments})
        self._replace("corral_deployment_requests_waiting", {(name,): each.waiting for name, each in load.items()})
        self._replace("corral_deployment_requests_running", {(name,): each.running for name, each in load.items()})
        told = {name: each.kv_ratio for name, each in load.items() if each.kv_ratio is not None}
        self._replace("corral_deployment_kv_ratio", {(name,): ratio for name, ratio in told.items()})

    def _show_rules(self, view: View) -> None:
        self._replace("corral_policy_info", {(view.policy,): 1} if view.policy else {})
        self._replace("corral_rule_demoted", {(note.rule or note.code,): 1 for note in view.demoted})
        self._replace("corral_rule_shadowed", {(code,): 1 for code in view.shadowed})
        verdicts: dict[tuple[str, ...], float] = {}
        shares: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in SHARES}
        for each in view.precision:
            verdicts |= {(each.rule, "right"): each.right, (each.rule, "wrong"): each.wrong}
            verdicts[each.rule, "none"] = each.unjudged
            for name, value in zip(SHARES, (each.ratio, each.low, each.high), strict=True):
                shares[name] |= {(each.rule,): value} if value is not None else {}
        self._replace("corral_rule_verdicts", verdicts)
        for name in SHARES:
            self._replace(name, shares[name])

    def _tally(self, name: str, found: Iterable[tuple[str, ...]], always: Iterable[tuple[str, ...]] = ()) -> None:
        self._replace(name, {**dict.fromkeys(always, 0), **Tally(found)})

    def _replace(self, name: str, series: Mapping[tuple[str, ...], float]) -> None:
        """Make a gauge's series exactly these: what is gone is no longer exported."""
        gauge = self.gauge(name)
        gauge.clear()
        for labels, value in series.items():
            gauge.labels(*labels).set(value)


def _by_state(always: Iterable[str], found: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    """Every state with its count, those that nothing is in too."""
    return {(state,): count for state, count in {**dict.fromkeys(always, 0), **found}.items()}


def _or_none(value: float | None) -> float:
    return math.nan if value is None else value


def _oldest(holds: Iterable[HoldLine]) -> dict[tuple[str, ...], float]:
    """When the oldest hold of each class of owners was placed."""
    found: dict[tuple[str, ...], float] = {}
    for hold in holds:
        owner = (owner_class(hold.owner),)
        found[owner] = min(hold.stands_since, found.get(owner, hold.stands_since))
    return found


def owner_class(owner: str) -> str:
    """The class of a hold's owner, as a label of few values."""
    name = owner.partition(":")[0]
    return name if name in OWNERS else "other"
