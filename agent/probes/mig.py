"""MIG instances: a new partition is a change that somebody made, an instance that is gone is a fault.

New instances under new UUIDs are a new partition; so is anything after the driver's own event or a change of the MIG
mode. Fewer of the same ones, with nothing else said, are missing. The GPU under them is as healthy as before.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.events import Mig
from vocab.observations import AnyObservation, DriverEvent, GpuIdentity, GpuSample, NodeSeen

CHANGED, MISSING = "mig_reconfigured", "mig_instance_missing"
MIG_EVENT = 0x100  # nvmlEventMigConfigChange
LATE_S = 60.0  # the list, the mode and the event are read one after another: the word on a change may come last


class Partition(msgspec.Struct):
    """The instances that one GPU should have (UUID -> gi, ci), its mode, and whether a change was announced."""

    wanted: dict[str, tuple[int | None, int | None]] | None = None  # None: never listed
    mode: int | None = None
    announced: bool = False
    missing: set[str] = set()
    missed_at: float = 0.0
    listed: dict[str, tuple[int | None, int | None]] = {}


class MigProbe(msgspec.Struct):
    """Remembers the partition of each GPU."""

    gpus: dict[str, Partition] = {}
    turn: int = 0

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take an inventory, the driver's event, or a mode in."""
        match observation:
            case NodeSeen():
                return [verdict for gpu in observation.gpus for verdict in self._listed(gpu, observation.at)]
            case DriverEvent(type="other", gpu=str(gpu), data=data) if data in {None, MIG_EVENT}:
                return list(self._announced(gpu, observation.at))
            case GpuSample() if observation.readings is not None and observation.readings.mig_mode is not None:
                gpu_, mode = scene.sampled(observation), observation.readings.mig_mode
                if gpu_ is not None:
                    return list(self._mode(gpu_, mode, observation.at))
        return ()

    def _mode(self, gpu: str, mode: int, at: float) -> Iterator[Verdict]:
        known = self.gpus.setdefault(gpu, Partition())
        if known.mode is not None and known.mode != mode:
            yield from self._announced(gpu, at)
        known.mode = mode

    def _announced(self, gpu: str, at: float) -> Iterator[Verdict]:
        """Somebody changes the instances: what is listed next is meant so, and what was missed just now was as well."""
        known = self.gpus.setdefault(gpu, Partition())
        if not known.missing or known.wanted is None or at - known.missed_at > LATE_S:
            known.announced = True
            return
        before, known.wanted = known.wanted, known.listed
        yield from self._restored(gpu, at, known)
        yield self._changed(gpu, at, before, known.listed)

    def _listed(self, gpu: GpuIdentity, at: float) -> Iterator[Verdict]:
        here = {str(one["uuid"]): (one.get("gi"), one.get("ci")) for one in gpu.mig if one.get("uuid")}
        known = self.gpus.setdefault(gpu.uuid, Partition())
        before, announced = known.wanted, known.announced
        known.announced, known.listed = False, here
        if before is None:
            known.wanted = here
        elif set(here) == set(before):
            yield from self._restored(gpu.uuid, at, known)
        elif announced or set(here) - set(before):
            known.wanted = here
            yield from self._restored(gpu.uuid, at, known)
            yield self._changed(gpu.uuid, at, before, here)
        else:
            yield from self._lacks(gpu, at, known, before, here)

    def _restored(self, gpu: str, at: float, known: Partition) -> Iterator[Verdict]:
        if known.missing:
            known.missing = set()
            yield Clear(code=MISSING, at=at, gpu=gpu)

    def _changed(self, gpu: str, at: float, before: Mapping[str, Any], here: Mapping[str, Any]) -> Verdict:
        self.turn += 1
        fields = {"before": sorted(before), "now": sorted(here), "expected": len(here)}
        text = f"MIG instances were changed from {len(before)} to {len(here)}"
        return node_finding(CHANGED, at, text, gpu=gpu, first=(self.turn, *sorted(here)), fields=fields)

    def _lacks(
        self, gpu: GpuIdentity, at: float, known: Partition, before: Mapping[str, Any], here: Mapping[str, Any]
    ) -> Iterator[Verdict]:
        lacking = sorted(set(before) - set(here))
        fresh = [uuid for uuid in lacking if uuid not in known.missing]
        known.missing = set(lacking)
        if fresh:
            known.missed_at = at
        for uuid in fresh:
            gi, ci = before[uuid]
            self.turn += 1
            yield node_finding(
                MISSING,
                at,
                f"MIG instance {uuid} is gone and nothing said that it would be",
                gpu=gpu.uuid,
                mig=None if gi is None else Mig(gi=gi, ci=ci),
                first=(self.turn, uuid),
                fields={"instance": uuid, "missing": lacking},
            )

    def forget(self, gpu: str) -> None:
        """A reset GPU comes back with no instances at all, unless somebody makes them again."""
        if gpu in self.gpus:
            self.gpus[gpu] = Partition(mode=self.gpus[gpu].mode)
