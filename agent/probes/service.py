"""Services that restart again and again: three times within ten minutes.

systemd's own count falls to zero at reset-failed, when the unit is made anew, and at a boot; a fall is no restart by
itself, and a new start time is one even if the count did not rise.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.observations import AnyObservation, NodeSeen, ServiceSeen

CODE = "service_flapping"
MOST = 3
WINDOW_S = 600.0
MOST_TOLD = 100  # restarts between two looks that are counted one by one; systemd itself gives up after a few
LAST_COUNT = 2**32 - 1  # systemd's counter is 32 bits wide


class Unit(msgspec.Struct):
    """One unit: what was seen last, when it restarted, and whether that was said."""

    restarts: int | None = None
    started_at: float | str | None = None
    ahead: int = 0  # restarts that the count told before a new start time was seen
    times: list[float] = []
    said: bool = False
    turn: int = 0


class ServiceProbe(msgspec.Struct):
    """Follows every unit by name."""

    units: dict[str, Unit] = {}
    boot: str | None = None

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a look at one unit."""
        match observation:
            case ServiceSeen():
                return self._seen(observation, now)
            case NodeSeen():
                if self.boot not in {None, observation.boot_id}:
                    self.units = {}
                self.boot = observation.boot_id
        return ()

    def _seen(self, seen: ServiceSeen, now: float) -> Sequence[Verdict]:
        unit = self.units.setdefault(seen.unit, Unit())
        if seen.restarts is not None and not 0 <= seen.restarts < LAST_COUNT:
            seen = msgspec.structs.replace(seen, restarts=None)
        unit.times += [now] * min(_restarts(unit, seen), MOST_TOLD)
        unit.restarts = unit.restarts if seen.restarts is None else seen.restarts
        unit.started_at = unit.started_at if seen.started_at is None else seen.started_at
        unit.times = [at for at in unit.times if now - at < WINDOW_S]
        if len(unit.times) < MOST or unit.said:
            return ()
        unit.said, unit.turn = True, unit.turn + 1
        text = f"{seen.unit} restarted {len(unit.times)} times within ten minutes"
        fields = {"service": seen.unit, "restarts": len(unit.times)}
        return (node_finding(CODE, seen.at, text, first=(seen.unit, unit.turn), fields=fields),)

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """A unit that has not restarted for the whole window has settled."""
        ended: list[Verdict] = []
        for name, unit in self.units.items():
            if unit.said and now >= unit.times[-1] + WINDOW_S:
                unit.said, unit.times = False, []
                ended.append(Clear(code=CODE, at=now, name=name))
        return ended

    def next_deadline(self) -> float | None:
        """When the first unit has settled."""
        return min((unit.times[-1] + WINDOW_S for unit in self.units.values() if unit.said), default=None)


def _restarts(unit: Unit, seen: ServiceSeen) -> int:
    """How many restarts this look shows. The first look is where counting starts."""
    grown = 0
    if seen.restarts is not None and unit.restarts is not None:
        grown = max(0, seen.restarts - unit.restarts)
    anew = None not in {unit.started_at, seen.started_at} and unit.started_at != seen.started_at
    if grown:
        unit.ahead = 0 if anew or seen.started_at is None else grown
        return grown
    if not anew:
        return 0
    told, unit.ahead = unit.ahead > 0, 0
    return 0 if told else 1
