"""Crash loop: a replica dies again and again, so that starting it again does not help.

Three restarts within ten minutes are the budget of an agent; the fourth death is one too many. The supervisor's own
word (an exit whose reason is crash_loop) counts at once. Whether the node, the GPU or the model is to blame is
seen by whoever sees more than one node.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.tenants import Tenant
from vocab.events import Evidence, Source, rfc3339

CODE = "crash_loop"
DEATHS = 4  # the first, and three restarts
WINDOW_S = 600.0
PROVEN_S = 600.0  # a life that lasted so long has ended the loop


class CrashLoopProbe(msgspec.Struct):
    """Counts the deaths of each replica."""

    deaths: dict[str, list[float]] = {}
    words: dict[str, list[str]] = {}
    said: dict[str, float] = {}  # since when

    def died(self, death: Finding, tenant: Tenant, now: float) -> Sequence[Verdict]:
        """One more death of it."""
        at = death.at or 0.0
        times = self.deaths[tenant.replica] = [t for t in self.deaths.get(tenant.replica, ()) if now - t < WINDOW_S]
        times.append(now)
        words = self.words[tenant.replica] = [*self.words.get(tenant.replica, ()), death.text][-DEATHS:]
        given_up = death.fields.get("exit") is not None and death.fields["exit"].get("reason") == CODE
        if tenant.replica in self.said or not (given_up or len(times) >= DEATHS):
            return ()
        self.said[tenant.replica] = now
        ((common, _),) = Counter(words).most_common(1)
        stamp = rfc3339(at)
        readings = {"deaths": len(times), "window_s": WINDOW_S}
        return (
            Finding(
                code=CODE,
                at=at,
                source=Source.ENGINE,
                first=(CODE, tenant.replica, stamp),
                fields=tenant.fields() | readings | {"was_ready": bool(death.fields.get("was_ready"))},
                text=f"{len(times)} deaths in {WINDOW_S / 60:.0f} minutes: {common}",
                evidence=(Evidence(source="engine", at=stamp, readings=readings),),
            ),
        )

    def lives(self, tenant: Tenant, at: float, now: float) -> Sequence[Verdict]:
        """It works: long enough, and the loop is over."""
        if tenant.replica not in self.said or now - max(self.deaths[tenant.replica]) < PROVEN_S:
            return ()
        del self.said[tenant.replica]
        return (Clear(code=CODE, at=at, name=tenant.replica),)
