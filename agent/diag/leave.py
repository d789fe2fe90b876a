"""Whether a grade may run on these GPUs now. Quick always may; what cannot be known forbids the others."""

from collections.abc import Iterable, Mapping

import msgspec

from vocab.diag import Grade


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How the node's GPUs stand. ``users``: who is on each GPU (replicas, processes); None where it is not known."""

    kept: frozenset[str]  # held or fenced: no new work comes
    users: Mapping[str, tuple[str, ...] | None]
    serving: tuple[str, ...]  # the replicas of the node that have a process


def objection(grade: Grade, gpus: Iterable[str], standing: Standing) -> str | None:
    """Why not, and what to do about it; None if it may."""
    if grade is Grade.QUICK:
        return None
    for gpu in gpus:
        users = standing.users.get(gpu)
        if gpu not in standing.kept:
            return f"{gpu} is in service: hold it first (corral drain {gpu} --reason …), for {grade} needs it whole"
        if users is None:
            return f"who uses {gpu} is not known: {grade} runs only on a GPU that is known to be empty"
        if users:
            return f"{gpu} is in use by {', '.join(users)}: wait for the drain, or stop it"
    if grade is Grade.BURN and standing.serving:
        return f"the node serves ({', '.join(standing.serving)}): burn needs a node without replicas; drain the node"
    return None
