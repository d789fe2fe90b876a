"""Stalled: work waits or runs, and no counter of the engine moves. Only that tells a wedged engine from a busy one.

A saturated engine answers no probe for a minute and still steps; a dead-locked one answers every probe. So an
answer of its door never counts here, and what is not known this time changes nothing. The patience is what its
own slowest steps say, else what its GPUs say: a long prefill keeps one busy, a lost GPU needs no waiting.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.odd import suspects
from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.tenants import Look, Tenant, Tenants
from vocab.events import Evidence, Source, rfc3339
from vocab.observations import Check, ReplicaSeen
from vocab.readings import Readings

CODE = "replica_stalled"
LEAST_S = 5.0  # a step of a long prefill on a large model takes seconds
SLOWEST_STEPS = 5.0  # times its own p99.9 step
UNTOLD_S = 30.0  # without a p99.9 of its own: five of the 6 s that a prefill of a long context takes
RESIDENT_S = 120.0  # a kernel is on a GPU: compiling, capturing and the longest prefills end within two minutes
JUDGED = frozenset({"ready", "draining", None})  # a starting engine compiles and loads: minutes without a step
BUSY = 0.95
SM_BUSY = 0.10
GONE = frozenset({"GPU_IS_LOST"})
SHOWN = ("utilization_ratio", "sm_active_ratio", "tensor_active_ratio", "power_w", "power_limit_w")


class Stillness(msgspec.Struct):
    """Since when one engine has work and does not move, its longest pause so far, and whether that was said."""

    since: float | None = None
    last_still: float | None = None
    longest_s: float = 0.0
    said: bool = False
    doubted: bool = False  # a check of its answers failed since it stands still


class StallProbe(msgspec.Struct):
    """Watches each engine for a stall."""

    stills: dict[str, Stillness] = {}

    def looked(self, look: Look, tenants: Tenants, now: float) -> Sequence[Verdict]:
        """Take one look at one replica."""
        seen, tenant = look.seen, look.tenant
        still = self.stills.setdefault(tenant.replica, Stillness())
        if look.is_new_life or seen.exit is not None or tenant.ended_at is not None:
            self.stills[tenant.replica] = Stillness(said=still.said and not look.is_new_life)
            return _clear(seen) if still.said and look.is_new_life else ()
        if look.moved or look.has_work is False:
            return self._goes_on(look, still, now)
        told = seen.step is not None or seen.tokens is not None
        if not told or look.has_work is None or not _is_judged(seen):
            return ()
        still.since = now if still.since is None else still.since
        still.last_still = now
        if still.said or now - still.since < self._patience(seen, tenant, still, tenants, now):
            return ()
        still.said = True
        return (_stalled(look, tenants, still, now),)

    def _goes_on(self, look: Look, still: Stillness, now: float) -> Sequence[Verdict]:
        if still.since is not None and still.last_still is not None and look.moved:
            still.longest_s = max(still.longest_s, still.last_still - still.since)
        still.since = now if look.has_work else None
        still.last_still, still.doubted = None, False
        if not still.said:
            return ()
        still.said = False
        return _clear(look.seen)

    def _patience(self, seen: ReplicaSeen, tenant: Tenant, still: Stillness, tenants: Tenants, now: float) -> float:
        listings = [tenants.listing(gpu, now) for gpu in tenant.gpus]
        if still.doubted or any(known and known.error in GONE for known in listings):
            return LEAST_S
        if seen.p999_step_s:
            return max(LEAST_S, SLOWEST_STEPS * seen.p999_step_s)
        if any(known and is_resident(known.readings) for known in listings):
            return RESIDENT_S
        return min(RESIDENT_S, max(UNTOLD_S, SLOWEST_STEPS * still.longest_s))

    def checked(self, check: Check, tenants: Tenants) -> Sequence[Verdict]:
        """A check of a replica or of its GPU has failed: a second witness, told of at once where it stalls already."""
        found = []
        for name, still in self.stills.items() if check.result == "problem" else ():
            tenant = tenants.named.get(name)
            if tenant is not None and (check.replica == name or (check.gpu is not None and check.gpu in tenant.gpus)):
                if still.said and not still.doubted:
                    found.append(_witnessed(tenant, check))
                still.doubted = True
        return found

    def stands(self, replica: str) -> bool:
        """Whether it was said to be stalled and has not moved since."""
        return replica in self.stills and self.stills[replica].said

    def shift(self, pause_s: float) -> None:
        """The node stood still as a whole: that time counts for nobody."""
        for still in self.stills.values():
            still.since = None if still.since is None else still.since + pause_s
            still.last_still = None if still.last_still is None else still.last_still + pause_s


def is_resident(readings: Readings | None) -> bool:
    """Whether a kernel is on the GPU: it may be one long step."""
    if readings is None:
        return False
    return (readings.utilization_ratio or 0.0) >= BUSY or (readings.sm_active_ratio or 0.0) >= SM_BUSY


def _is_judged(seen: ReplicaSeen) -> bool:
    """An engine whose clients have all gone shows its last gauges for ever: in a drain they prove nothing."""
    return seen.phase in JUDGED and (seen.phase != "draining" or seen.open_requests is not None)


def _clear(seen: ReplicaSeen) -> Sequence[Verdict]:
    return (Clear(code=CODE, at=seen.at, name=seen.replica),)


def _witnessed(tenant: Tenant, check: Check) -> Finding:
    stamp = rfc3339(check.at)
    return Finding(
        code=CODE,
        at=check.at,
        source=Source.ENGINE,
        first=(CODE, tenant.replica, check.check, stamp),
        fields=tenant.fields() | {"witness": check.check},
        text=f"its {check.check} fails too: {check.text or check.code or check.result}",
        evidence=(Evidence(source="check", at=stamp, line=check.text or check.check),),
        count=0,
        joins=True,
    )


def _stalled(look: Look, tenants: Tenants, still: Stillness, now: float) -> Finding:
    seen, tenant = look.seen, look.tenant
    stamp, for_s = rfc3339(seen.at), now - (now if still.since is None else still.since)
    readings: dict[str, object] = {
        "step": seen.step,
        "tokens": seen.tokens,
        "running": seen.running,
        "waiting": seen.waiting,
        "open_requests": seen.open_requests,
        "health": seen.health,
        "without_step_s": round(for_s, 3),
    }
    activity = {gpu: _activity(known.readings) for gpu in tenant.gpus if (known := tenants.listing(gpu, now))}
    blamed = suspects({gpu: known.readings for gpu in tenant.gpus if (known := tenants.listing(gpu, now))}, tenant.gpus)
    fields = tenant.fields() | {"health": seen.health, "still_since": round(seen.at - for_s, 3), "verdict": "wedged"}
    if still.doubted:
        fields["witness"] = "check"
    if blamed:
        fields["suspects"] = [{"gpu": gpu, "confidence": confidence} for gpu, confidence in blamed]
    return Finding(
        code=CODE,
        at=seen.at,
        source=Source.ENGINE,
        first=(CODE, seen.replica, seen.step, stamp),
        pid=tenant.pids[0] if tenant.pids else None,
        fields=fields,
        text=f"no step for {for_s:.1f} s while {seen.running or 0} requests run and {seen.waiting or 0} wait",
        evidence=(
            Evidence(source="engine", at=stamp, readings={name: v for name, v in readings.items() if v is not None}),
            *(Evidence(source="nvml", at=stamp, readings={"gpu": gpu} | found) for gpu, found in activity.items()),
        ),
    )


def _activity(readings: Readings | None) -> dict[str, object]:
    found = {name: getattr(readings, name, None) for name in SHOWN}
    return {name: value for name, value in found.items() if value is not None}
