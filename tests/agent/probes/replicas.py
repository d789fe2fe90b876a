"""Playing looks at replicas through their probe: what tests of it share."""

from typing import Any

from agent.probes.probe import Clear, Finding
from agent.probes.replica import ReplicaProbe
from agent.probes.scene import Scene
from tests.agent.made import replica, scene
from vocab.observations import AnyObservation

Found = tuple[float, Finding | Clear]


def play(*looks: dict[str, Any], step: float = 1.0, probe: ReplicaProbe | None = None) -> list[Found]:
    """Looks at one replica, ``step`` seconds apart."""
    return see(*(replica(turn * step, **look) for turn, look in enumerate(looks)), probe=probe)


def see(
    *observations: AnyObservation,
    probe: ReplicaProbe | None = None,
    until: float | None = None,
    at: Scene | None = None,
) -> list[Found]:
    """Observations at their own times, the probe's deadlines between them and up to ``until``."""
    probe, at, found = probe or ReplicaProbe(), at or scene(), []
    for observation in observations:
        found += _pass(probe, at, observation.at)
        found += [(observation.at, verdict) for verdict in probe.observe(observation, at, observation.at)]
    return found + (_pass(probe, at, until) if until is not None else [])


def _pass(probe: ReplicaProbe, at: Scene, until: float) -> list[Found]:
    found: list[Found] = []
    while (due := probe.next_deadline()) is not None and due <= until:
        found += [(due, verdict) for verdict in probe.tick(at, due)]
    return found


def codes(found: list[Found]) -> list[str]:
    """The codes of the findings, in order."""
    return [verdict.code for _, verdict in found if isinstance(verdict, Finding)]


def cleared(found: list[Found]) -> list[str]:
    """The codes that were cleared, in order."""
    return [verdict.code for _, verdict in found if isinstance(verdict, Clear)]


def only(found: list[Found], code: str) -> Finding:
    """The one finding of this code."""
    (one,) = [verdict for _, verdict in found if isinstance(verdict, Finding) and verdict.code == code]
    return one
