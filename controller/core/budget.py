"""The budget: what every harmful act must fit into. Each question answers None (it fits) or the limit it breaks.

Only harmful acts ask; lifting, releasing and replacing never do.
"""

from controller.core.fleet import Fleet
from controller.core.kinds import REPAIRS, STARTED
from controller.core.policy import OWNER
from controller.core.replicas import Life, Replica, is_leaving
from vocab.lines import Budget

NODES_PER_REPAIR = 20  # one more repair at a time for each


def cordons(fleet: Fleet, now: float) -> Budget | None:
    """GPUs newly held by the policy in the window and held still; a lost GPU counts, a lifted hold does not."""
    limits = fleet.settings.limits
    recent = {
        hold.subject
        for hold in fleet.ledger.holds.values()
        if hold.owner == OWNER and hold.subject.gpu is not None and hold.at > now - limits.window_s
    }
    limit = max(1, min(limits.cordons, int(limits.cordons_ratio * len(fleet.gpus))))
    if len(recent) < limit:
        return None
    return Budget(limit=limit, used=len(recent), of=f"GPUs newly cordoned in {limits.window_s:g} s")


def floor(fleet: Fleet, replica: Replica) -> Budget | None:
    """Replicas that would serve without this one, against the deployment's ``min_ready``.

    Serving is what is ready and, of those that will go, what still steps: the gateway falls back on it. A
    replica that does not step serves nobody, so taking it away costs nothing.
    """
    deployment = fleet.deployments.get(replica.deployment)
    if deployment is None or not replica.is_stepping:
        return None
    others = [other for other in fleet.roster.of(replica.deployment) if other.id != replica.id]
    serving = [other for other in others if _serves(fleet, other)]
    if len(serving) >= deployment.min_ready:
        return None
    return Budget(limit=deployment.min_ready, used=len(serving), of=f"replicas of {deployment.name} that serve")


def _serves(fleet: Fleet, replica: Replica) -> bool:
    if fleet.life(replica) is not Life.RUN:
        return False
    return replica.is_stepping if is_leaving(fleet.ledger, replica) else replica.is_ready


def repairs(fleet: Fleet) -> Budget | None:
    """Resets, reboots and power cycles under way."""
    running = [a for a in fleet.ledger.live(*REPAIRS) if a.state in STARTED]
    limit = max(1, fleet.settings.limits.repairs, len(fleet.nodes) // NODES_PER_REPAIR)
    if len(running) < limit:
        return None
    return Budget(limit=limit, used=len(running), of="repairs at one time")


def starts(fleet: Fleet, deployment: str, now: float) -> tuple[Budget | None, float]:
    """Failed starts of a deployment in the window, and when the oldest of them is forgotten."""
    limits = fleet.settings.limits
    failed = [at for at, _ in fleet.roster.failures(deployment, now - limits.window_s)]
    until = min(failed, default=now) + limits.window_s
    if len(failed) < limits.starts:
        return None, until
    return Budget(limit=limits.starts, used=len(failed), of=f"failed starts in {limits.window_s:g} s"), until
