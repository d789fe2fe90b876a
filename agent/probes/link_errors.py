"""NVLink error counters that grow, and bit error rates over the limit.

Counters run since driver load; the first value seen, and one that is smaller than the last, only say where they start.
Replays and recoveries are rare on a sound link (DCGM fails on one more), CRC errors count by rate (DCGM: 100 a second
fails). All of it is repaired by the link itself, so it is a reason to look and never a hold.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.baseline import Baseline
from agent.probes.figures import Read, finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.events import Severity
from vocab.observations import AnyObservation
from vocab.readings import LinkReadings

CODE = "nvlink_errors"
COUNTERS = ("crc_errors", "replays", "recoveries")
CRC_PER_S = 100.0  # DcgmGPUHardwareLimits.h
MOST_BER = 1e-12  # effective; DcgmUtilities.cpp
QUIET_S = 3_600.0  # errors of a marginal link come in bursts, under load
LEAST_S = 1.0
SHOWN = ("nvlink_rx_bytes", "nvlink_tx_bytes", "nvlink_megabytes_per_s")


class LinkCounters(msgspec.Struct):
    """One link: its counters, what was said of it, and when it last had an error."""

    counters: dict[str, Baseline] = {}
    last: LinkReadings | None = None
    seen_at: float = 0.0
    raised: int = 0
    last_bad: float = 0.0
    turn: int = 0


class LinkErrorsProbe(msgspec.Struct):
    """Follows the counters of every link, by ``gpu/link``."""

    links: dict[str, LinkCounters] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None or not seen.sample.links:
            return ()
        return [v for n, link in seen.sample.links.items() for v in self._link(seen, n, link, now)]

    def _link(self, seen: Read, n: str, link: LinkReadings, now: float) -> Iterator[Verdict]:
        key = f"{seen.gpu}/{n}"
        known = self.links.get(key)
        if known is None:
            known = self.links[key] = LinkCounters()
        passed, known.seen_at = now - known.seen_at, now
        if link == known.last and not known.raised:
            return  # nothing has moved
        known.last = link
        grown, rate = self._grown(known, link, passed, now)
        noisy = link.effective_ber is not None and link.effective_ber > MOST_BER
        if not grown and not noisy:
            if known.raised and now - known.last_bad >= QUIET_S:
                known.raised = 0
                yield Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu, device=f"link:{n}")
            return
        known.last_bad = now
        severity = Severity.ERROR if noisy or rate >= CRC_PER_S else Severity.WARNING
        if known.raised > severity.rank:
            return
        known.raised, known.turn = severity.rank + 1, known.turn + 1
        yield self._say(seen, n, link, known, grown, severity)

    @staticmethod
    def _grown(known: LinkCounters, link: LinkReadings, passed: float, now: float) -> tuple[dict[str, int], float]:
        """By how much each counter rose, and how many CRC errors a second that is."""
        grown, rate = {}, 0.0
        for name in COUNTERS:
            value = getattr(link, name)
            if value is None:
                continue
            baseline = known.counters.setdefault(name, Baseline())
            rose = baseline.rose(value, now)
            if rose:
                grown[name] = rose
                rate = rose / max(passed, LEAST_S) if name == "crc_errors" else rate
        return grown, rate

    @staticmethod
    def _say(
        seen: Read, n: str, link: LinkReadings, known: LinkCounters, grown: dict[str, int], severity: Severity
    ) -> Verdict:
        words = [f"{count} more {name.replace('_', ' ')}" for name, count in grown.items()]
        if link.effective_ber is not None and link.effective_ber > MOST_BER:
            words.append(f"a bit error rate of {link.effective_ber:g}")
        fields: dict[str, object] = {"link": int(n) if n.isdigit() else None, **grown}
        if link.effective_ber is not None:
            fields["effective_ber"] = link.effective_ber
        return finding(
            seen.sample,
            seen.gpu,
            CODE,
            f"NVLink {n} has {', '.join(words)}",
            names=SHOWN,
            device=f"link:{n}",
            first=(CODE, n, known.turn, *grown.values()),
            severity=severity,
            fields=fields,
        )

    def forget(self, gpu: str) -> None:
        """A reset starts the counters of this GPU anew."""
        for key, link in self.links.items():
            if key.startswith(gpu + "/"):
                link.counters.clear()
                link.raised = 0
