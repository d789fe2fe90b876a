"""Sources of readings: what is not watched is unknown, which is an alert and never a fault of the hardware.

A source that stays down for 60 s (300 s after a boot) opens monitor_unreachable; the first *up* ends it. A lack of
permission is said at once, for waiting would not change it. NVML that fails with UNKNOWN at its very start while the
kernel log says nothing of the driver is such a lack: a container that lost its devices. A driver that is not loaded or
does not match its library has its own code beside this one (see version).
"""

from collections.abc import Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import BOOT_GRACE_S, Scene
from vocab.events import Evidence, Source, rfc3339
from vocab.observations import AnyObservation, DriverCall, KernelRecord, SourceState

UNREACHABLE, PERMISSION = "monitor_unreachable", "probe_permission"
PATIENCE_S = 60.0
UNKNOWN = "UNKNOWN"  # NVML 999
SILENCE_S = 120.0  # a driver in trouble has said so in the kernel log within that
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
    driver_spoke_at: float | None = None  # in the kernel log

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take the state of one source in."""
        match observation:
            case SourceState(state="up" | "down"):
                return self._turned(observation, scene, now)
            case DriverCall(gpu=None, state="returned" | "failed") if observation.call.startswith("nvmlInit"):
                state = "up" if observation.state == "returned" else "down"
                said = SourceState(at=observation.at, source="nvml", state=state, error=observation.error)
                return self._turned(said, scene, now)
            case KernelRecord(line=str(line)) if "NVRM" in line:
                self.driver_spoke_at = now
        return ()

    def _turned(self, observation: SourceState, scene: Scene, now: float) -> Sequence[Verdict]:
        name = observation.source
        if observation.state == "up":
            gone = self.outages.pop(name, None)
            return [Clear(code=code, at=observation.at, name=name) for code in sorted(gone.said)] if gone else ()
        outage = self.outages.get(name)
        if outage is None:
            grace = scene.boot_at + BOOT_GRACE_S if scene.boot_at is not None else 0.0
            outage = self.outages[name] = Outage(now, observation.error, max(now + PATIENCE_S, grace))
        outage.error = observation.error or outage.error
        code = PERMISSION if self._is_cut_off(observation, outage, now) else AT_ONCE.get(outage.reason)
        return self._say(name, outage, code, observation.at) if code else ()

    def _is_cut_off(self, observation: SourceState, outage: Outage, now: float) -> bool:
        """Whether our own way to the driver is what fails, not the driver."""
        spoke = self.driver_spoke_at is not None and now - self.driver_spoke_at <= SILENCE_S
        return observation.source == "nvml" and not observation.remote and outage.reason == UNKNOWN and not spoke

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
            verdicts.extend(self._say(name, outage, UNREACHABLE, now))
        return verdicts

    def next_deadline(self) -> float | None:
        """When the first outage becomes due."""
        return min((o.due for o in self.outages.values() if UNREACHABLE not in o.said), default=None)
