"""Sources of readings: what is not watched is unknown, which is an alert and never a fault of the hardware.

A source that stays down for 60 s (300 s after a boot) opens monitor_unreachable, and driver_not_loaded
beside it where that is the reason; the first *up* ends both. A lack of permission is said at once, for
waiting would not change it.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import BOOT_GRACE_S, Scene
from vocab.events import Evidence, Source, rfc3339
from vocab.observations import AnyObservation, SourceState

UNREACHABLE, PERMISSION, NO_DRIVER = "monitor_unreachable", "probe_permission", "driver_not_loaded"
PATIENCE_S = 60.0
NOT_LOADED = "DRIVER_NOT_LOADED"  # NVML 9
AT_ONCE = {
    "NO_PERMISSION": PERMISSION,
    "EACCES": PERMISSION,
    "EPERM": PERMISSION,
    "ENOENT": PERMISSION,  # a container without the device
    "ENODEV": PERMISSION,
    "OPERATING_SYSTEM": PERMISSION,  # NVML 17: the device cgroup forbids it
}
ADVICE = {
    PERMISSION: "it may not be read: run the agent as root or give its user CAP_SYSLOG and the nvidia devices",
    NO_DRIVER: "the NVIDIA driver is not loaded: modprobe nvidia, or see dmesg for why it failed",
    UNREACHABLE: "it does not answer; what it would tell is unknown",
}


class Outage(msgspec.Struct):
    """Since when a source is down, why, and what was said of it."""

    since: float
    error: str | None
    due: float
    said: set[str] = set()

    @property
    def reason(self) -> str:
        """The name of its error; what follows a colon is for people."""
        return (self.error or "").partition(":")[0]


class SourceProbe(msgspec.Struct):
    """Follows the sources that are down."""

    outages: dict[str, Outage] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take the state of one source in."""
        if not isinstance(observation, SourceState) or observation.state not in {"up", "down"}:
            return ()
        name = observation.source
        if observation.state == "up":
            gone = self.outages.pop(name, None)
            return [Clear(code=code, at=observation.at, name=name) for code in sorted(gone.said)] if gone else ()
        outage = self.outages.get(name)
        if outage is None:
            grace = scene.boot_at + BOOT_GRACE_S if scene.boot_at is not None else 0.0
            outage = self.outages[name] = Outage(now, observation.error, max(now + PATIENCE_S, grace))
        outage.error = observation.error or outage.error
        code = AT_ONCE.get(outage.reason)
        return self._say(name, outage, code, observation.at) if code else ()

    def _say(self, name: str, outage: Outage, code: str, at: float) -> Sequence[Verdict]:
        if code in outage.said:
            return ()
        outage.said.add(code)
        reason = f" ({outage.error})" if outage.error else ""
        stamp, text = rfc3339(at), f"{name}{reason}: {ADVICE[code]}"
        return (
            Finding(
                code=code,
                at=at,
                source=Source.CORRAL,
                first=(code, name, stamp),
                fields={"source": name, "error": outage.error},
                text=text,
                evidence=(Evidence(source="corral", at=stamp, line=text),),
            ),
        )

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Say what has been down for too long; a node that is still booting gets more time."""
        verdicts: list[Verdict] = []
        for name, outage in self.outages.items():
            if UNREACHABLE in outage.said or now < outage.due:
                continue
            if scene.booting:
                outage.due = now + PATIENCE_S
                continue
            if outage.reason == NOT_LOADED and scene.driver is None:
                verdicts.extend(self._say(name, outage, NO_DRIVER, now))
            verdicts.extend(self._say(name, outage, UNREACHABLE, now))
        return verdicts

    def next_deadline(self) -> float | None:
        """When the first outage becomes due."""
        return min((o.due for o in self.outages.values() if UNREACHABLE not in o.said), default=None)
