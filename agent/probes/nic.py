"""Network ports: down, going up and down, and counters at the end of their width.

What all ones means depends on the counter: a port's counters stop there (InfiniBand, 8, 16 and 32 bits wide), so it is
the end of counting and no lack of a value. How much a counter grew after that is unknown, not zero. A value that falls
is a new baseline (somebody reset it), and so is another boot; nothing ever wraps.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.events import Recovery, Severity
from vocab.observations import AnyObservation, HostSample, NodeSeen

DOWN, FLAP, SATURATED = "nic_down", "nic_flap", "counter_saturated"
WIDTHS: dict[str, int] = {  # the last value of each counter (InfiniBand PortCounters)
    "link_downed": 2**8 - 1,
    "symbol_error": 2**16 - 1,
    "port_rcv_errors": 2**16 - 1,
    "port_xmit_discards": 2**16 - 1,
    "port_xmit_wait": 2**32 - 1,
}
UP_WORDS = frozenset({"up", "active", "1", "true", "linkup"})
MINUTE_S, HOUR_S = 60.0, 3_600.0
PER_MINUTE, PER_HOUR = 3, 10  # steps within a minute from which on, and within an hour over which, a port flaps
QUIET_S = 3_600.0


class Port(msgspec.Struct):
    """One port: its last counters, the steps of link_downed, and what was said."""

    counters: dict[str, int] = {}
    steps: list[tuple[float, int]] = []
    saturated: set[str] = set()
    down: bool = False
    flapping: bool = False
    turn: int = 0

    @property
    def counts(self) -> bool:
        """Whether its falls are counted, though perhaps not read this time."""
        return "link_downed" in self.counters


class NicProbe(msgspec.Struct):
    """Follows every port by name."""

    ports: dict[str, Port] = {}
    boot: str | None = None

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a look at the host."""
        match observation:
            case HostSample():
                ports = observation.devices.items()
                return [v for name, read in ports for v in self._port(name, read, observation.at, now)]
            case NodeSeen():
                if self.boot not in {None, observation.boot_id}:
                    for port in self.ports.values():
                        port.counters, port.steps, port.saturated = {}, [], set()
                        port.down = port.flapping = False
                self.boot = observation.boot_id
        return ()

    def _port(self, name: str, read: Mapping[str, Any], at: float, now: float) -> Iterator[Verdict]:
        nic = name.removeprefix("nic:")
        port = self.ports.setdefault(nic, Port())
        was_down = port.down
        yield from self._state(nic, port, read.get("state"), at)
        grown, full = self._counted(port, read)
        yield from self._saturation(nic, port, full, read, at)
        fell = port.down and not was_down and not port.counts  # a source that does not count
        yield from self._flap(nic, port, 1 if fell else grown.get("link_downed"), read, at, now)

    def _state(self, nic: str, port: Port, state: Any, at: float) -> Iterator[Verdict]:
        if state is None:
            return
        up = state == 1 if isinstance(state, int | float) else str(state).lower() in UP_WORDS
        if not up and not port.down:
            port.down = True
            yield self._say(DOWN, nic, port, at, f"port {nic} is down", {"state": state})
        elif up and port.down:
            port.down = False
            yield Clear(code=DOWN, at=at, device=f"nic:{nic}")

    @staticmethod
    def _counted(port: Port, read: Mapping[str, Any]) -> tuple[dict[str, int], set[str]]:
        """By how much each counter grew (where that is known), and which stand at their end."""
        grown, full = {}, set()
        for name, end in WIDTHS.items():
            value = read.get(name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
                full |= {name} & port.saturated  # not read this time: as before
                continue
            before = port.counters.get(name)
            if before is not None and before <= value and before != end:
                grown[name] = value - before
            if value == end:
                full.add(name)
            port.counters[name] = value
        return grown, full

    def _saturation(
        self, nic: str, port: Port, full: set[str], read: Mapping[str, Any], at: float
    ) -> Iterator[Verdict]:
        before, port.saturated = port.saturated, full
        fresh = full - before
        if fresh:
            text = f"counters of {nic} are at their end and count no more: {', '.join(sorted(full))}; reset them"
            fields = {"counters": sorted(full), "hint": "reset counters"}
            yield self._say(SATURATED, nic, port, at, text, {name: read[name] for name in sorted(fresh)}, fields)
        elif before and not full:
            yield Clear(code=SATURATED, at=at, device=f"nic:{nic}")

    def _flap(
        self, nic: str, port: Port, grown: int | None, read: Mapping[str, Any], at: float, now: float
    ) -> Iterator[Verdict]:
        if grown:
            port.steps.append((now, grown))
        port.steps = [(when, count) for when, count in port.steps if now - when <= HOUR_S]
        minute = sum(count for when, count in port.steps if now - when <= MINUTE_S)
        hour = sum(count for _, count in port.steps)
        if grown and (minute >= PER_MINUTE or hour > PER_HOUR):
            if not port.flapping:
                port.flapping = True
                text = f"port {nic} went down {hour} times within an hour, {minute} within a minute"
                yield self._say(FLAP, nic, port, at, text, dict(read), {"in_60_s": minute, "in_1_h": hour})
        elif grown and port.counts:  # else it was just said that it is down
            text = f"port {nic} went down {grown} times"
            fields = {"in_60_s": minute, "in_1_h": hour}
            yield self._say(FLAP, nic, port, at, text, dict(read), fields, severity=Severity.INFO)
        elif port.flapping and not port.steps:
            port.flapping = False
            yield Clear(code=FLAP, at=at, device=f"nic:{nic}")

    @staticmethod
    def _say(
        code: str,
        nic: str,
        port: Port,
        at: float,
        text: str,
        readings: Mapping[str, Any],
        fields: Mapping[str, Any] | None = None,
        *,
        severity: Severity | None = None,
    ) -> Verdict:
        port.turn += 1
        return node_finding(
            code,
            at,
            text,
            device=f"nic:{nic}",
            first=(nic, port.turn),
            severity=severity,
            recovery=Recovery.NONE if severity is Severity.INFO else None,
            fields={"nic": nic, **(fields or {})},
            readings=readings,
        )
