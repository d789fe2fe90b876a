"""DCGM's own health watches, as checks: a second opinion, never the last word.

Each GPU and system is one check (``dcgm_memory``). It reports when its incidents change, and its pass takes
them back. How bad a fault is we judge from its readings; a watch that fails is an error to look into.
Two kinds of incidents are left out, each with its reason below. Texts of incidents are never read: some are
printed with the wrong arguments.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agent.sources.dcgm.engine import FE_GPU, Engine
from agent.sources.dcgm.names import SYSTEMS, error_name
from vocab.observations import Check, GpuIdentity

ALL_SYSTEMS = 0xFFFFFFFF
FAIL = 20
MOST_S = 60.0  # a check was seen to take 45 s on a GPU under load with corrected errors (DCGM issue 313)
NO_CHECKS = frozenset({"pmu", "mcu", "sm", "nvswitch_nonfatal", "nvswitch_fatal", "connectx"})  # nothing of a GPU

# An engine remembers Xids for its life and says when of none; they are told as they happen, by policy or field 230.
XIDS = frozenset({81, 101, 109, 120, 131})
# Any growth within a minute: normal on a GPU that works at its power limit; our own codes look at reasons and limits.
NORMAL = frozenset({10, 12})

Incidents = tuple[tuple[int, int], ...]  # (how bad, code), the worst first


class Health(msgspec.Struct):
    """The watches of one group. ``gpus``: by the engine's number."""

    engine: Engine
    group: Any
    gpus: Mapping[int, GpuIdentity]
    said: dict[tuple[int, str], Incidents] = {}
    first: bool = True

    def start(self) -> None:
        """Switch all watches on. Raises CallFailed."""
        self.engine.call("dcgmHealthSet", self.engine.handle, self.group, ALL_SYSTEMS)

    def check(self, at: float) -> list[Check]:
        """What has changed since the last check; on the first, the engine only takes its marks. Raises CallFailed."""
        found = self.engine.call("dcgmHealthCheck", self.engine.handle, self.group, allowed_s=MOST_S)
        if self.first:
            self.first = False
            return []
        incidents = _by_system(found)
        return [check for number in self.gpus for check in self._changes(number, incidents, at)]

    def _changes(self, number: int, incidents: Mapping[tuple[int, str], Incidents], at: float) -> Iterator[Check]:
        for system in SYSTEMS.values():
            key = number, system
            now = incidents.get(key, ())
            if system in NO_CHECKS or now == self.said.get(key):
                continue
            self.said[key] = now
            yield _check(self.gpus[number].uuid, system, now, at)


def _by_system(found: Any) -> dict[tuple[int, str], Incidents]:
    """Incidents of GPUs that count here, by (number, system)."""
    sets: dict[tuple[int, str], set[tuple[int, int]]] = {}
    for index in range(found.incidentCount):
        incident = found.incidents[index]
        entity, code = incident.entityInfo, int(incident.error.code)
        if entity.entityGroupId == FE_GPU and code not in XIDS | NORMAL:
            system = SYSTEMS.get(int(incident.system), "any")
            sets.setdefault((int(entity.entityId), system), set()).add((-int(incident.health), code))
    return {key: tuple((-bad, code) for bad, code in sorted(each)) for key, each in sets.items()}


def _check(gpu: str, system: str, incidents: Incidents, at: float) -> Check:
    name = f"dcgm_{system}"
    if not incidents:
        return Check(at=at, check=name, gpu=gpu, result="pass")
    names = [error_name(code) for _, code in incidents]
    fails = incidents[0][0] >= FAIL
    text = f"DCGM's {system} watch {'fails' if fails else 'warns'}: {', '.join(names)}"
    return Check(at=at, check=name, gpu=gpu, result="problem", code=names[0], text=text, fatal=fails)
