"""Whether a grade may run on these GPUs now. Quick always may; what cannot be known forbids the others."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from vocab.diag import Grade
from vocab.observations import GpuSample

LEAST_FREE_BYTES = 2 * 2**30  # a context and its libraries take 0.5 to 1 GiB, the products a quarter; the rest is room


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How the node's GPUs stand. ``users``: who is on each GPU (replicas, processes); None where it is not known."""

    kept: frozenset[str]  # held or fenced: no new work comes
    users: Mapping[str, tuple[str, ...] | None]
    serving: tuple[str, ...]  # the replicas of the node that have a process


def hindrance(sample: GpuSample | None, device: str) -> str | None:
    """Why no work can be run on a GPU without harm, whatever the grade; None if it can."""
    readings = sample.readings if sample is not None else None
    if device != "cuda" or readings is None:
        return None
    if readings.mig_mode:
        return "it is partitioned (MIG): its instances belong to their users"
    total, used = readings.memory_total_bytes, readings.memory_used_bytes
    if total is None or used is None:
        return None  # the program asks the device itself
    free = total - used - (readings.memory_reserved_bytes or 0)
    return f"only {max(free, 0) >> 20} MiB of its memory are free" if free < LEAST_FREE_BYTES else None


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


def lapsed(grade: Grade, gpus: Sequence[str], standing: Standing) -> str | None:
    """Whether a leave that was given has ended. Who is on the GPUs is not asked again: that is the test."""
    return objection(grade, gpus, msgspec.structs.replace(standing, users=dict.fromkeys(gpus, ())))
