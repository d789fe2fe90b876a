"""The autopsy: what a replica died of, as far as its exit, its own words and the error that it reports tell.

The judge joins this with the faults of its GPUs and the kernel's out-of-memory killer.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from agent.probes.probe import Finding
from agent.probes.tenants import Look
from vocab.catalogue.cuda import Blame, CudaError, error_in, known_error
from vocab.catalogue.exits import UNSEEN, ending, signal_of
from vocab.events import Evidence, Source, rfc3339
from vocab.observations import Exit, ReplicaSeen

CODE = "replica_died"
LATE_S = 30.0  # an error that was printed longer ago did not end it

BLAMED: dict[Blame, tuple[str, str | None]] = {  # verdict, and how sure it makes us of the GPU of a single-GPU replica
    Blame.GPU: ("killed_by_gpu", "medium"),
    Blame.FABRIC: ("killed_by_gpu", "low"),
    Blame.LOST: ("killed_by_gpu", "low"),
    Blame.HANG: ("suspicious", "low"),
    Blame.AMBIGUOUS: ("suspicious", "low"),
    Blame.SOFTWARE: ("crashed_by_itself", None),
    Blame.NODE: ("node_software", None),
    Blame.MEMORY: ("out_of_gpu_memory", None),
}


class Life(msgspec.Struct):
    """What speaks for the death of one replica so far."""

    down: bool = False  # this life has ended and that was said
    open: bool = False  # a death was said and it has not served since
    looked: bool = False  # it was looked at since its death: only what moves from then on speaks for it
    shut: int = 0
    shut_as: str = ""
    error: int | str | None = None
    error_step: int | None = None
    last_error: tuple[float, int] | None = None  # of its log: when, and which


def died(
    look: Look,
    life: Life,
    how: Exit | None,
    now: float,
    *,
    text: str | None = None,
    pid: int | None = None,
    pids: Sequence[int] = (),
    living: Sequence[int] = (),
) -> Finding:
    """The finding of one death; ``how`` is None where no exit was seen."""
    seen, tenant = look.seen, look.tenant
    stamp = rfc3339(seen.at)
    error = _error(seen, life, how, now)
    verdict = _verdict(error, how)
    exit_fields = {k: v for k, v in msgspec.to_builtins(how).items() if k != "text"} if how else None
    fields: dict[str, Any] = tenant.fields() | {"verdict": verdict, "was_ready": look.before.was_ready}
    if exit_fields is not None:
        fields["exit"] = exit_fields
    if error is not None:
        fields |= {"error": error.code or error.name, "error_name": error.name}
        confidence = BLAMED[error.blame][1]
        if confidence is not None and len(tenant.gpus) == 1:
            fields["suspects"] = [{"gpu": tenant.gpus[0], "confidence": confidence}]
    if len(pids) > 1:
        fields["pids"] = list(pids)
    if living:
        fields["alive"] = list(living)
    words = text or _words(how)
    said = how.text[:200] if how is not None and how.text else None
    if said:
        fields["said"] = said
    return Finding(
        code=CODE,
        at=seen.at,
        source=Source.ENGINE,
        first=(CODE, tenant.replica, stamp),
        pid=pid if pid is not None else tenant.pids[0] if tenant.pids else None,
        fields=fields,
        text=words + (f": {said}" if said else ""),
        evidence=(Evidence(source="engine", at=stamp, readings={"exit": exit_fields} if how else {"text": words}),),
    )


def _error(seen: ReplicaSeen, life: Life, how: Exit | None, now: float) -> CudaError | None:
    """The error that it ended with: as it reports it, as its exit or its last lines tell it."""
    reported = known_error(seen.error) or known_error(life.error) or error_in(how.text if how else None)
    if reported is None and life.last_error is not None and now - life.last_error[0] <= LATE_S:
        reported = known_error(life.last_error[1])
    return reported


def _verdict(error: CudaError | None, how: Exit | None) -> str:
    if error is not None:
        return BLAMED[error.blame][0]
    return "crashed_by_itself" if how is None else ending(how.code, how.signal, how.reason).verdict


def _words(how: Exit | None) -> str:
    if how is None:
        return "it cannot work any more"
    told, by = ending(how.code, how.signal, how.reason), signal_of(how.code, how.signal)
    if told is UNSEEN:
        return "the replica's process ended, and nobody saw how"
    ended = f"signal {by}" if by else how.reason if how.code is None else f"code {how.code}"
    return f"the replica's process ended by itself ({ended}): {told.words}"
