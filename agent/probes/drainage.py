"""Drainage: whether a replica that drains is empty, and how that is known.

By our own count of open requests where there is one. An engine whose clients have all gone publishes its gauges
only with its next step, so they may stand at their last values for ever: if nothing but gauges is known and no
counter has moved for half a minute, nobody is being served. Empty is not gone: its exit is waited for a little, and
memory on a GPU must be free too.
"""

import msgspec

from agent.probes.tenants import Look, Tenants

NO_PROGRESS_S = 30.0  # longer than the longest step of a request that is being served
STILL = "no progress, gauge stale"
EXIT_S = 5.0  # an engine that exits by itself once it is empty does so within seconds


class Drainage(msgspec.Struct):
    """One drain: since when its counters have stood still, since when it is empty, and by which sign."""

    still_since: float
    empty_since: float | None = None
    why: str = ""
    due: float | None = None

    def say(self, why: str, since: float, patience_s: float) -> None:
        """It is empty by this sign since then, or still is."""
        moved = self.why == STILL == why and since != self.empty_since
        if self.empty_since is None or self.why != why or moved:
            self.empty_since, self.due, self.why = since, since + patience_s, why


class DrainProbe(msgspec.Struct):
    """Follows every replica that drains."""

    drains: dict[str, Drainage] = {}

    def looked(self, look: Look, now: float) -> None:
        """Take one look in."""
        seen, tenant = look.seen, look.tenant
        if tenant.phase != "draining" or look.is_new_life or seen.exit is not None:
            self.drains.pop(tenant.replica, None)
            return
        drain = self.drains.setdefault(tenant.replica, Drainage(now))
        if look.moved:
            drain.still_since = now
        if look.has_work is False:
            stale = seen.open_requests == 0 and bool(seen.running or seen.waiting)
            drain.say("no request is open" + ": the engine's gauges are stale" * stale, now, EXIT_S)
        elif look.has_work and seen.open_requests is None:
            drain.say(STILL, drain.still_since, NO_PROGRESS_S)
        elif look.has_work:
            drain.empty_since = drain.due = None

    def next_deadline(self) -> float | None:
        """When the next drain may count as over."""
        return min((drain.due for drain in self.drains.values() if drain.due is not None), default=None)

    def tick(self, now: float) -> None:
        """Those that have waited long enough."""
        for drain in self.drains.values():
            if drain.due is not None and now >= drain.due:
                drain.due = None

    def released(self, replica: str, tenants: Tenants) -> str:
        """Why it is over; "" if it is not, or if a GPU still lists a process of it.

        Lists that were told since it is empty and name none of its processes prove it at once.
        """
        drain, tenant = self.drains.get(replica), tenants.named.get(replica)
        if drain is None or tenant is None or drain.empty_since is None:
            return ""
        pids = set(tenants.pids_of(tenant))
        listings = [tenants.gpus.get(gpu) for gpu in tenant.gpus]
        if any(known and known.processes and pids & known.processes.keys() for known in listings):
            return ""
        told = [known.told_at for known in listings if known is not None and known.told_at is not None]
        free = bool(pids) and len(told) == len(listings) and min(told) >= drain.empty_since and drain.why != STILL
        return drain.why if free or drain.due is None else ""
