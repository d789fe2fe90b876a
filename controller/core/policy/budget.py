"""The budget: what every harmful act must fit into. Each question answers None (it fits) or the limit it breaks.

Only harmful acts ask, of automation and of people alike; lifting, releasing and replacing never do. A person may go
over a limit by force (``core.operator``, ``core.repairs.approval``), and counts in it all the same.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.kinds import STARTED
from controller.core.fleet.ledger import AGENT
from controller.core.fleet.replicas import Life, Replica, is_leaving
from controller.core.fleet.settings import Limits
from vocab.lines import ActionLine, Budget, HoldLine, Subject
from vocab.states import REPAIRS, Health, NodeState

BACKOFF_S = 10.0  # after a group that failed, doubled each time: nobody restarts its parts in place
TWO_ALWAYS = 2  # GPUs of one node: one may be a fault of another
NODES_PER_REPAIR = 20  # one more repair at a time for each


def cordons(fleet: Fleet, place: Subject, node: str, now: float) -> Budget | None:
    """Whether one more place may be cordoned on this node now: in the fleet, its pool, its domains and on the node.

    A node counts once, however many of its GPUs are held: what takes a whole node is one fault. On the node itself,
    GPUs that still answer count: more than half of them (two always) at once look like a mistake. Counted is what was
    newly held within the window and is held still, by the policy and by people (a fence is no hold of its own: the
    policy confirms it, or it ends); what a person looked at and discarded begins the count anew.
    """
    recent = _recent(fleet, now)
    return _of_node(fleet, recent, place, node) or _of_scopes(fleet, recent, node)


def cordons_of_person(fleet: Fleet, place: Subject, node: str, now: float) -> Budget | None:
    """As ``cordons``, for a person's hold: one on what is out of service already takes nothing more out of it."""
    out = [*fleet.ledger.standing(place), *fleet.ledger.standing(Subject(node=node))]
    if any(not hold.owner.startswith(AGENT) for hold in out):
        return None
    return cordons(fleet, place, node, now)


def room_at(fleet: Fleet, place: Subject, node: str, now: float) -> float | None:
    """When ``cordons`` that are used up have room for a place again, if nothing more is held; None: never."""
    times = sorted(hold.stands_since + fleet.settings.limits.window_s + 1.0 for hold in _recent(fleet, now))
    nth = bisect_left(times, True, key=lambda at: cordons(fleet, place, node, at) is None)
    return times[nth] if nth < len(times) else None


def cordons_with(fleet: Fleet, holds: Iterable[HoldLine], now: float) -> list[Budget]:
    """What is used of every budget that these holds, which stand, count in."""
    recent, places = _recent(fleet, now), [hold.subject for hold in holds]
    named = [(place, gpu.node if (gpu := fleet.gpus.get(place.gpu or "")) else place.node or "") for place in places]
    nodes = dict.fromkeys(node for _, node in named)
    found = [_on_node(fleet, recent, node) for node in dict.fromkeys(n for p, n in named if p.gpu is not None)]
    pools = [pool for pool in dict.fromkeys(map(fleet.pool_of, nodes)) if pool is not None]
    domains = [name for name, members in fleet.domains.items() if not nodes.keys().isdisjoint(members)]
    held = {_node_of(fleet, hold) for hold in recent}
    return [*found, *(_cordons(fleet, held, pools, domains).values() if nodes else ())]


def _recent(fleet: Fleet, now: float) -> list[HoldLine]:
    since = max(now - fleet.settings.limits.window_s, fleet.ledger.discarded_at)
    holds = fleet.ledger.holds.values()
    return [hold for hold in holds if hold.stands_since > since and not hold.owner.startswith(AGENT)]


def _of_node(fleet: Fleet, recent: list[HoldLine], place: Subject, node: str) -> Budget | None:
    if place.gpu is None or fleet.health(place.gpu) is Health.LOST:
        return None
    if any(hold.subject.gpu == place.gpu or hold.subject.node == node for hold in recent):
        return None  # it is counted already
    found = _on_node(fleet, recent, node)
    return None if found.used < found.limit else found


def _on_node(fleet: Fleet, recent: list[HoldLine], node: str) -> Budget:
    gpus = [gpu.identity.uuid for gpu in fleet.gpus_at(node)]
    held = {hold.subject.gpu for hold in recent}
    used = [gpu for gpu in gpus if gpu in held and fleet.health(gpu) is not Health.LOST]
    limits = fleet.settings.limits_of(fleet.pool_of(node))
    limit = max(TWO_ALWAYS, int(limits.node_ratio * len(gpus)))
    return Budget(limit=limit, used=len(used), of=f"GPUs of {node} newly cordoned in {limits.window_s:g} s")


def _of_scopes(fleet: Fleet, recent: list[HoldLine], node: str) -> Budget | None:
    held = {_node_of(fleet, hold) for hold in recent}
    if node in held:
        return None
    pool = fleet.pool_of(node)
    domains = [name for name, nodes in fleet.domains.items() if node in nodes]
    found = _cordons(fleet, held, [] if pool is None else [pool], domains)
    return next((each for each in found.values() if each.used >= each.limit), None)


def now_used(fleet: Fleet, now: float) -> dict[str, Budget]:
    """What is used of each budget that holds for more than one node; of failure domains those of which anything is."""
    held = {_node_of(fleet, hold) for hold in _recent(fleet, now)}
    domains = [name for name, nodes in fleet.domains.items() if not held.isdisjoint(nodes)] if held else []
    cordons_of = _cordons(fleet, held, fleet.pools, domains)
    return {**{f"cordons of {name}": each for name, each in cordons_of.items()}, "repairs": repairs_now(fleet)}


def _cordons(
    fleet: Fleet, held: Collection[str | None], pools: Iterable[str], domains: Iterable[str]
) -> dict[str, Budget]:
    """What ``held`` uses of the fleet's budget of cordons, and of those of these pools and domains.

    Each fault asks, in a fleet of thousands of nodes: nothing here looks at every node or domain.
    """
    limits, of_pool = fleet.settings.limits, Counter(fleet.pool_of(each or "") for each in held)
    found = {"the fleet": (len(fleet.nodes), sum(each in fleet.nodes for each in held), limits)}
    for name in pools:
        found[f"pool {name}"] = len(fleet.pools[name]), of_pool[name], fleet.settings.limits_of(name)
    for name in domains:
        nodes = fleet.domains[name]
        found[f"domain {name}"] = len(nodes), sum(each in nodes for each in held), limits
    return {name: _cordoned(name, *each) for name, each in found.items()}


def _cordoned(name: str, size: int, used: int, limits: Limits) -> Budget:
    limit = min(limits.cordons, ceil(limits.cordons_ratio * size))
    return Budget(limit=limit, used=used, of=f"nodes of {name} newly cordoned in {limits.window_s:g} s")


def _node_of(fleet: Fleet, hold: HoldLine) -> str | None:
    gpu = fleet.gpus.get(hold.subject.gpu or "")
    return gpu.node if gpu is not None else hold.subject.node


def closings(fleet: Fleet, manager: str, place: Subject) -> Budget | None:
    """GPUs that a manager keeps closed for us, this place with all that is in it; one place is always possible."""
    ledger = fleet.ledger
    found = [s for (by, s), key in ledger.closings.items() if by == manager and s != place and key in ledger.ordered_at]
    used = sum(_size(fleet, subject) for subject in found)
    if used == 0:
        return None
    gpu = fleet.gpus.get(place.gpu or "")
    limits = fleet.settings.limits_of(fleet.pool_of(gpu.node if gpu is not None else place.node or ""))
    limit = int(limits.closed_ratio * sum(fleet.size(node) for node in fleet.managers.nodes_of(manager)))
    if used + _size(fleet, place) <= limit:
        return None
    return Budget(limit=limit, used=used, of=f"GPUs of {manager}'s nodes that are closed there")


def _size(fleet: Fleet, place: Subject) -> int:
    return 1 if place.gpu is not None else fleet.size(place.node or "")


def floor(fleet: Fleet, replica: Replica) -> Budget | None:
    """Replicas that would serve without this one, against the deployment's ``min_ready``.

    Serving is what is ready and, of those that will go, what still steps: the gateway falls back on it. A
    replica that does not step, or whose GPU is lost, serves nobody: taking it away costs nothing. Of one whose node
    has fallen silent nobody knows: it is not counted on.
    """
    return floors(fleet, (replica,))


def floors(fleet: Fleet, going: Sequence[Replica]) -> Budget | None:
    """As ``floor``, without all of these at once: of the first deployment that would have too few left."""
    gone = {replica.id for replica in going}
    for replica in going:
        deployment = fleet.deployments.get(replica.deployment)
        if deployment is None or not replica.is_stepping or is_lost(fleet, replica):
            continue
        others = [other for other in fleet.roster.of(replica.deployment) if other.id not in gone]
        serving = sum(_serves(fleet, other) for other in reliable(fleet, others))
        if serving < deployment.min_ready:
            return Budget(limit=deployment.min_ready, used=serving, of=f"replicas of {deployment.name} that serve")
    return None


def words(broken: Budget) -> str:
    """The limit, for whoever is refused."""
    return f"{broken.used:g} of {broken.limit:g} {broken.of}"


def is_lost(fleet: Fleet, replica: Replica) -> bool:
    """Whether a GPU of it is gone: whatever it says, it serves nobody for much longer, and no floor keeps it."""
    return any(fleet.health(gpu) is Health.LOST for gpu in replica.gpus)


def _serves(fleet: Fleet, replica: Replica) -> bool:
    if fleet.life(replica) is not Life.RUN:
        return False
    return replica.is_stepping if is_leaving(fleet.ledger, replica) else replica.is_ready


def reliable(fleet: Fleet, replicas: Iterable[Replica]) -> Iterator[Replica]:
    """Those of which what they said last can be counted on when another one is to go.

    Their nodes report, their GPUs are there, and no repair that was ordered ends them: by an approval it may end also
    what still serves.
    """
    started = [fleet.ledger.actions[key] for key in fleet.ledger.started]
    under_way = [action for action in started if action.of in REPAIRS]
    for replica in replicas:
        live = all(fleet.node_state(node) == NodeState.LIVE for node in replica.nodes)
        if live and not is_lost(fleet, replica) and not any(_ends(repair, replica) for repair in under_way):
            yield replica


def _ends(repair: ActionLine, replica: Replica) -> bool:
    about = repair.subject
    return replica.subject in repair.disrupts or about.gpu in replica.gpus or about.node in replica.nodes


def repairs(fleet: Fleet) -> Budget | None:
    """Whether one more repair may begin now."""
    used = repairs_now(fleet)
    return None if used.used < used.limit else used


def repairs_now(fleet: Fleet) -> Budget:
    """Resets, reboots and power cycles under way, and how many may be."""
    running = [a for a in fleet.ledger.live(*REPAIRS) if a.state in STARTED]
    limit = max(1, fleet.settings.limits.repairs, len(fleet.nodes) // NODES_PER_REPAIR)
    return Budget(limit=limit, used=len(running), of="repairs at one time")


def starts(fleet: Fleet, deployment: str, now: float) -> tuple[Budget | None, float]:
    """Failed starts of a deployment in the window, and when the oldest of them is forgotten."""
    limits = fleet.settings.limits
    failed = [at for at, _ in fleet.roster.failures(deployment, now - limits.window_s)]
    until = min(failed, default=now) + limits.window_s
    if len(failed) < limits.starts:
        return None, until
    return Budget(limit=limits.starts, used=len(failed), of=f"failed starts in {limits.window_s:g} s"), until


def group_starts(fleet: Fleet, deployment: str, now: float) -> tuple[Budget | None, float]:
    """Whether the back-off after the last group of a deployment that failed is over, and when it will be."""
    failed = [at for at, _ in fleet.roster.failures(deployment, now - fleet.settings.limits.window_s)]
    pause_s = BACKOFF_S * 2 ** (len(failed) - 1) if failed else 0.0
    until = max(failed, default=now) + pause_s
    if now >= until:
        return None, until
    return Budget(limit=0, used=len(failed), of=f"groups that failed less than {pause_s:g} s ago"), until
