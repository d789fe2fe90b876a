"""Drainage: whether a replica that drains is empty, and how that is known.

By our own count of open requests where there is one. An engine whose clients have all gone publishes its gauges
only with its next step, so they may stand at their last values for ever: if nothing but gauges is known and no
counter has moved for half a minute, nobody is being served. Empty is not gone: memory on a GPU must be free too.
"""

import msgspec

from agent.probes.tenants import Look, Tenants

NO_PROGRESS_S = 30.0  # longer than the longest step of a request that is being served


class Drainage(msgspec.Struct):
    """One drain: since when its counters have stood still, and why it counts as empty."""

    still_since: float
    why: str = ""


class DrainProbe(msgspec.Struct):
    """Follows every replica that drains."""

    drains: dict[str, Drainage] = {}

    def looked(self, look: Look, now: float) -> None:
        """Take one look in."""
        seen, replica = look.seen, look.tenant.replica
        if seen.phase not in {"draining", None} or look.tenant.phase != "draining" or look.is_new_life:
            self.drains.pop(replica, None)
            return
        drain = self.drains.setdefault(replica, Drainage(now))
        if look.moved is not False:
            drain.still_since = now
        drain.why = _why(look, now - drain.still_since) or drain.why * (look.has_work is None)

    def released(self, replica: str, tenants: Tenants) -> str:
        """Why it is empty; "" if it is not, or if a GPU still lists a process of it."""
        drain, tenant = self.drains.get(replica), tenants.named.get(replica)
        if drain is None or tenant is None or not drain.why:
            return ""
        pids = set(tenants.pids_of(tenant))
        listings = [tenants.gpus.get(gpu) for gpu in tenant.gpus]
        held = any(known and known.processes and pids & known.processes.keys() for known in listings)
        return "" if held else drain.why


def _why(look: Look, still_s: float) -> str:
    seen = look.seen
    if look.has_work is False:
        stale = seen.open_requests == 0 and bool(seen.running or seen.waiting)
        return "no request is open" + (": the engine's gauges are stale" if stale else "")
    if look.has_work and seen.open_requests is None and still_s >= NO_PROGRESS_S:
        return f"no progress for {still_s:.0f} s, gauge stale"
    return ""
