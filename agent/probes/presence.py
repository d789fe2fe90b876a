"""Presence: is every GPU that should be here here, and does its driver reach it?

*Lost*: the driver says GPU_IS_LOST of one GPU. *Missing*: the inventory, the PCI bus or the configured
count shows a GPU that the driver does not list. While a node starts, missing GPUs are only information.
A GPU that another driver holds (vfio-pci) or that was replaced at its address is gone on purpose.
"""

from collections.abc import Iterable, Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import BOOT_GRACE_S, Scene
from vocab.events import Evidence, Recovery, Severity, Source, rfc3339
from vocab.observations import AnyObservation, GpuSample, NodeSeen, PciDevice

LOST, MISSING, COUNT = "gpu_lost", "gpu_missing", "gpu_count_mismatch"
GONE = frozenset({"GPU_IS_LOST"})  # NVML 15: fell off the bus or its driver cannot reach it
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers; bridges and audio carry the vendor's id too
GPU_DRIVERS = frozenset({None, "", "nvidia"})  # None: nobody has bound it, which is a fault as well


class Gap(msgspec.Struct, frozen=True):
    """One place where a GPU should be: the UUID if it was ever known, the address if one is."""

    gpu: str | None
    pci: str | None

    @property
    def key(self) -> str:
        """What tells gaps apart."""
        return self.gpu or self.pci or "unknown slot"


class PresenceProbe(msgspec.Struct):
    """Remembers which GPUs this node has had, which are lost, and which gaps were said."""

    known: dict[str, str] = {}  # UUID -> address, of GPUs that should be here
    lost: set[str] = set()
    gaps: dict[str, Gap] = {}
    said: dict[str, int] = {}  # gap -> rank of the severity that was said
    expected: int | None = None
    present: int = 0
    turn: int = 0
    due: float | None = None

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a sample's error or an inventory in."""
        match observation:
            case GpuSample():
                return self._sampled(observation, scene)
            case NodeSeen():
                return self._inventory(observation, scene, now)
        return ()

    def _sampled(self, sample: GpuSample, scene: Scene) -> Sequence[Verdict]:
        gpu = scene.sampled(sample)
        if gpu is None:
            return ()
        if sample.error in GONE:
            return () if gpu in self.lost else (self._lose(sample, gpu, scene),)
        if gpu in self.lost and sample.error is None and sample.readings is not None:
            self.lost.discard(gpu)
            scene.absent.discard(gpu)
            return (Clear(code=LOST, at=sample.at, gpu=gpu),)
        return ()

    def _lose(self, sample: GpuSample, gpu: str, scene: Scene) -> Finding:
        self.lost.add(gpu)
        scene.absent.add(gpu)
        self.turn += 1
        stamp, source = rfc3339(sample.at), sample.source or "nvml"
        return Finding(
            code=LOST,
            at=sample.at,
            gpu=gpu,
            pci=sample.pci or self.known.get(gpu),
            source=Source.DCGM if source == "dcgm" else Source.NVML,
            first=(LOST, self.turn, stamp),
            fields={"error": sample.error},
            text=f"every read of the GPU fails with {sample.error}",
            evidence=(Evidence(source=source, at=stamp, line=f"{sample.error} on reading {gpu}"),),
        )

    def _inventory(self, seen: NodeSeen, scene: Scene, now: float) -> Sequence[Verdict]:
        if seen.driver is None and not seen.gpus:
            return ()  # no driver, no list: nothing is known of any GPU
        here = {gpu.uuid: gpu.pci for gpu in seen.gpus}
        taken = {pci: uuid for uuid, pci in here.items()}
        away = _bound_elsewhere(seen.pci_devices or ())
        self.known |= here
        for uuid, pci in list(self.known.items()):
            replaced = pci in taken and taken[pci] != uuid
            if uuid not in here and (replaced or pci in away):
                del self.known[uuid]
        self.expected, self.present = seen.expected_gpus, len(here)
        self.gaps = {gap.key: gap for gap in self._gaps(seen, set(here), set(taken))}
        returned = [key for key in self.said if key not in self.gaps]
        return (*self._returned(returned, seen.at, scene), *self._say(scene, seen.at, now))

    def _gaps(self, seen: NodeSeen, here: set[str], taken: set[str]) -> Iterable[Gap]:
        named = [Gap(uuid, pci) for uuid, pci in sorted(self.known.items()) if uuid not in here]
        yield from named
        addresses = taken | {gap.pci for gap in named if gap.pci}
        unnamed = [Gap(None, device.pci) for device in _displays(seen.pci_devices or ()) if device.pci not in addresses]
        yield from unnamed
        if seen.expected_gpus is not None and seen.expected_gpus > len(here) + len(named) + len(unnamed):
            yield Gap(None, None)

    def _returned(self, keys: list[str], at: float, scene: Scene) -> Iterable[Verdict]:
        for key in keys:
            del self.said[key]
            scene.absent.discard(key)
            yield Clear(code=MISSING, at=at, gpu=key if key in self.known else None, name=key)
        if keys and not self.gaps:
            yield Clear(code=COUNT, at=at)

    def _say(self, scene: Scene, at: float, now: float) -> list[Verdict]:
        starting = scene.starting(now)
        self.due = self._look_again(scene, now) if starting and self.gaps else None
        rank = Severity.INFO.rank if starting else Severity.CRITICAL.rank
        fresh = [gap for key, gap in self.gaps.items() if self.said.get(key, -1) < rank]
        for gap in fresh:
            self.said[gap.key] = rank
            if gap.gpu:
                scene.absent.add(gap.gpu)
        if not fresh:
            return []
        self.turn += 1
        return [self._mismatch(at, starting=starting), *(self._missing(gap, at, starting=starting) for gap in fresh)]

    @staticmethod
    def _look_again(scene: Scene, now: float) -> float:
        """The end of the boot's grace; a node that calls itself booting beyond that is asked every minute."""
        ends = scene.boot_at + BOOT_GRACE_S if scene.boot_at is not None else now
        return max(ends, now + 60.0) if scene.booting else max(ends, now)

    def _mismatch(self, at: float, *, starting: bool) -> Finding:
        names = [gap.pci or gap.key for gap in self.gaps.values()]
        total = self.expected if self.expected is not None else self.present + len(self.gaps)
        text = f"{self.present} of {total} GPUs are there; missing: {', '.join(names)}"
        return _found(COUNT, at, self.turn, text, starting=starting, fields={"present": self.present, "missing": names})

    def _missing(self, gap: Gap, at: float, *, starting: bool) -> Finding:
        text = f"the GPU at {gap.pci or 'an unknown slot'} is not listed by the driver"
        return _found(MISSING, at, self.turn, text, gap=gap, starting=starting, fields={"slot": gap.key})

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Once the start of the node is over, what is still missing is a fault."""
        if self.due is None or now < self.due:
            return ()
        return self._say(scene, now, now)

    def next_deadline(self) -> float | None:
        """When missing GPUs stop being mere information."""
        return self.due

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.lost.discard(gpu)


def _displays(devices: Sequence[PciDevice]) -> list[PciDevice]:
    """The GPUs of the bus that should be ours."""
    return [d for d in devices if (d.class_ or "").startswith(DISPLAY_CLASSES) and d.driver in GPU_DRIVERS]


def _bound_elsewhere(devices: Sequence[PciDevice]) -> set[str]:
    """Addresses of GPUs that another driver holds, as for a virtual machine."""
    return {d.pci for d in devices if (d.class_ or "").startswith(DISPLAY_CLASSES) and d.driver not in GPU_DRIVERS}


def _found(
    code: str, at: float, turn: int, text: str, *, starting: bool, fields: dict[str, object], gap: Gap | None = None
) -> Finding:
    stamp = rfc3339(at)
    return Finding(
        code=code,
        at=at,
        gpu=gap.gpu if gap else None,
        pci=gap.pci if gap else None,
        severity=Severity.INFO if starting else None,
        recovery=Recovery.NONE if starting else None,
        source=Source.HOST,
        first=(code, gap.key if gap else "", turn, stamp),
        fields=fields,
        text=text + (" (the node is starting)" if starting else ""),
        evidence=(Evidence(source="host", at=stamp, line=text),),
    )
