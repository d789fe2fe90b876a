"""Groups: replicas with members on several nodes. What their agents say of their parts adds up to one status.

The first node leads: it alone has a door, so it says whether the group serves and what it does. The group is ready
only while every member lives, and dead as soon as one has ended: its work is gone then, and what still runs of it is
left over and must end before anything else may have its GPUs.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from msgspec.structs import replace

from vocab.messages import ReplicaStatus

FIRST_PORT, PORTS = 20_000, 10_000  # where a group's processes meet: below what kernels give out by themselves


def joined(nodes: Sequence[str], parts: Mapping[str, ReplicaStatus]) -> ReplicaStatus | None:
    """The status of a group; None while nothing was heard of any part of it."""
    told = [parts[node] for node in nodes if node in parts]
    if not told:
        return None
    dead = next((part for part in told if has_ended(part)), None)
    leads = parts.get(nodes[0])
    if dead is not None:
        left = tuple(pid for part in told for pid in (*part.leftovers, *((part.pid,) if _runs(part) else ())) if pid)
        return replace(
            leads or dead,
            phase="stopped",
            ready=False,
            admitting=False,
            stepping=False,
            open_requests=0,
            exit=dead.exit,
            token=dead.token,
            leftovers=left,
        )
    lives = len(told) == len(nodes) and not any(is_absent(part) for part in told)
    attempt = min(part.attempt for part in told) if lives else 0
    if leads is None:
        return replace(told[0], phase="starting", ready=False, admitting=False, url="", pid=None, attempt=attempt)
    starts = any(part.phase == "starting" for part in told)
    drains = next((part for part in told if part.phase == "draining"), None)
    return replace(
        leads,
        phase="starting" if starts else "draining" if drains is not None else leads.phase,
        ready=lives and leads.ready,
        admitting=lives and all(part.admitting for part in told),
        attempt=attempt,
    )


def has_ended(part: ReplicaStatus) -> bool:
    """Whether a part's agent says that nothing of it runs any more."""
    return part.phase == "stopped"


def is_absent(part: ReplicaStatus) -> bool:
    """Whether a part's agent has not started it once."""
    return part.phase == "starting" and part.attempt == 0


def _runs(part: ReplicaStatus) -> bool:
    return not has_ended(part) and not is_absent(part)


def was_lost(before: ReplicaStatus | None, part: ReplicaStatus) -> bool:
    """Whether a part that ran is another process now, or none: its node has booted, and no agent starts one part."""
    if before is None or not _runs(before) or has_ended(part):
        return False
    return is_absent(part) or (None not in {before.pid, part.pid} and before.pid != part.pid)


def together(nodes: Sequence[str], why: str) -> str:
    """Why a replica goes; of a group also from where all of it does."""
    if len(nodes) == 1:
        return why
    said = f"its members on {' and '.join(nodes)} leave together"
    return why if said in why else f"{why}; {said}"


def port_of(replica: str) -> int:
    """Where the processes of a group meet on its leader: the same for all of them, and for two groups hardly ever."""
    return FIRST_PORT + int.from_bytes(blake2b(replica.encode(), digest_size=4).digest()) % PORTS
