"""Presence: is every GPU that should be here here?

*Missing*: the inventory of before, the PCI bus or the configured count shows a GPU that the driver does not list.
While a node starts, missing GPUs are only information. A GPU that a virtual machine holds (vfio-pci) is removed, one
whose place a new board has taken is replaced: both are gone on purpose. Identity is the UUID; an index is a label.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import BOOT_GRACE_S, Scene
from vocab.events import UNKNOWN_SLOT, Evidence, Recovery, Scope, Severity, Source, rfc3339
from vocab.observations import AnyObservation, NodeSeen, PciDevice, SourceState
from vocab.pci import pci_address

MISSING, COUNT, REPLACED, REMOVED = "gpu_missing", "gpu_count_mismatch", "gpu_replaced", "gpu_removed"
DISPLAY_CLASSES = ("0300", "0302")  # VGA and 3D controllers; bridges and audio carry the vendor's id too
OURS = frozenset({None, "", "nvidia", "nouveau"})  # None: nobody has bound it, which is a fault as well
NO_SERIALS = frozenset(
    {"", "0", "N/A", "[N/A]", "<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"}
)


class Gap(msgspec.Struct, frozen=True):
    """One place where a GPU should be: the UUID if it was ever known, the address if one is."""

    gpu: str | None
    pci: str | None

    @property
    def key(self) -> str:
        """What tells gaps apart."""
        return self.gpu or self.pci or UNKNOWN_SLOT


class Counts(msgspec.Struct):
    """How many GPUs the configuration, the bus and the driver know; None where one was not asked."""

    expected: int | None = None
    bus: int | None = None
    listed: int = 0


class PresenceProbe(msgspec.Struct):
    """Remembers which GPUs this node has had and which gaps were said."""

    known: dict[str, str] = {}  # UUID -> address, of GPUs that should be here
    serials: dict[str, str] = {}
    gaps: dict[str, Gap] = {}
    said: dict[str, int] = {}  # gap -> rank of the severity that was said
    counts: Counts = msgspec.field(default_factory=Counts)
    excluded: list[str] = []
    turn: int = 0
    due: float | None = None
    unreadable: bool = False
    boot: str | None = None

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take an inventory in."""
        match observation:
            case NodeSeen():
                if self.boot not in {None, observation.boot_id}:
                    self.said = {}  # another boot: what is still missing is said again
                self.boot = observation.boot_id
                return self._inventory(observation, scene, now)
            case SourceState(source="nvml"):
                self.unreadable = observation.state == "down"
        return ()

    def _inventory(self, seen: NodeSeen, scene: Scene, now: float) -> Sequence[Verdict]:
        if not seen.gpus and (seen.driver is None or self.unreadable or _mismatched(seen)):
            return ()  # no driver, or none that can be asked: nothing is known of any GPU
        here = {gpu.uuid: gpu.pci for gpu in seen.gpus}
        taken = {pci: uuid for uuid, pci in here.items()}
        bus = [device for device in seen.pci_devices or () if _is_display(device)]
        away = {_address(device) for device in bus if device.is_passed_on}
        gone = list(self._gone(seen, here, taken, away))
        self.known |= here
        self.serials |= {gpu.uuid: gpu.serial for gpu in seen.gpus if gpu.serial and gpu.serial not in NO_SERIALS}
        ours = {_address(device) for device in bus if device.driver in OURS}
        on_bus = None if seen.pci_devices is None else len(ours | (set(taken) - away))
        self.counts, self.excluded = Counts(seen.expected_gpus, on_bus, len(here)), sorted(away)
        self.gaps = {gap.key: gap for gap in self._gaps(seen.expected_gpus, here, ours, len(away))}
        returned = [key for key in self.said if key not in self.gaps]
        return (*gone, *self._returned(returned, seen.at, scene), *self._say(scene, seen.at, now))

    def _gone(self, seen: NodeSeen, here: dict[str, str], taken: dict[str, str], away: set[str]) -> Iterable[Finding]:
        """GPUs that left on purpose; they are no longer known."""
        boards = {gpu.uuid: gpu for gpu in seen.gpus}
        for uuid, pci in list(self.known.items()):
            new = taken.get(pci)
            if uuid in here or (pci not in away and (new is None or new in self.known)):
                continue  # here; or missing, though another known board may sit at its old address now
            del self.known[uuid]
            serial = self.serials.pop(uuid, None)
            self.turn += 1
            if new is not None:
                fields = {"by": new, "serial": serial, "serial_now": boards[new].serial}
                text = f"another board sits at {pci}: {new}"
                yield _found(REPLACED, seen.at, self.turn, text, fields=fields, gap=Gap(uuid, pci))
            else:
                text = f"the GPU at {pci} was given to a virtual machine"
                yield _found(REMOVED, seen.at, self.turn, text, fields={"driver": "vfio-pci"}, gap=Gap(uuid, pci))

    def _gaps(self, expected: int | None, here: dict[str, str], ours: set[str], away: int) -> Iterable[Gap]:
        taken = set(here.values())
        missing = sorted((uuid, pci) for uuid, pci in self.known.items() if uuid not in here)
        named = [Gap(uuid, None if pci in taken else pci) for uuid, pci in missing]
        yield from named
        addresses = taken | {gap.pci for gap in named if gap.pci}
        unnamed = [Gap(None, pci) for pci in sorted(ours - addresses)]
        yield from unnamed
        if expected is not None and expected > len(here) + len(named) + len(unnamed) + away:
            yield Gap(None, None)

    def _returned(self, keys: list[str], at: float, scene: Scene) -> Iterable[Verdict]:
        for key in keys:
            del self.said[key]
            scene.absent.discard(key)
            if key in self.known:
                yield Clear(code=MISSING, at=at, gpu=key)
        if keys and not any(gap.gpu is None for gap in self.gaps.values()):
            yield Clear(code=MISSING, at=at)  # addresses without a known GPU are one condition of the node
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
        named = [gap for gap in fresh if gap.gpu or gap.pci]
        return [self._mismatch(at, starting=starting), *(self._missing(gap, at, starting=starting) for gap in named)]

    @staticmethod
    def _look_again(scene: Scene, now: float) -> float:
        """The end of the boot's grace; a node that calls itself booting beyond that is asked every minute."""
        ends = scene.boot_at + BOOT_GRACE_S if scene.boot_at is not None else now
        return max(ends, now + 60.0) if scene.booting else max(ends, now)

    def _mismatch(self, at: float, *, starting: bool) -> Finding:
        names = [gap.pci or gap.key for gap in self.gaps.values()]
        counts = self.counts
        total = counts.expected if counts.expected is not None else counts.listed + len(self.gaps)
        text = f"{counts.listed} of {total} GPUs are there; missing: {', '.join(names)}"
        fields = {"expected": counts.expected, "pci": counts.bus, "nvml": counts.listed, "missing": names}
        return _found(COUNT, at, self.turn, text, starting=starting, fields=fields | {"excluded": self.excluded})

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
        """A reset GPU is where it was."""

    def doubt(self, gpu: str, due: float) -> None:
        """A person called it healthy: if no inventory lists it until then, that is said again."""
        if self.said.pop(gpu, None) is not None:
            self.due = due


def _is_display(device: PciDevice) -> bool:
    return (device.class_ or "").lower().removeprefix("0x").startswith(DISPLAY_CLASSES)


def _address(device: PciDevice) -> str:
    return pci_address(device.pci) or device.pci


def _mismatched(seen: NodeSeen) -> bool:
    return seen.library is not None and seen.driver is not None and not same_version(seen.driver, seen.library)


def same_version(driver: str, library: str) -> bool:
    """Whether library and kernel module are of one build. NVML puts its interface's number before the driver's
    (``12.550.90.07``), and its error text leaves the last part out (``550.127``)."""
    ours, theirs = driver.split("."), library.split(".")
    if len(theirs) > 1 and len(theirs[0]) < 3:
        theirs = theirs[1:]
    if len(theirs[0]) < 3:
        return True  # an interface's number alone says nothing of the build
    return all(one == other for one, other in zip(ours, theirs, strict=False))


def _found(
    code: str,
    at: float,
    turn: int,
    text: str,
    *,
    fields: Mapping[str, object],
    starting: bool = False,
    gap: Gap | None = None,
) -> Finding:
    stamp = rfc3339(at)
    return Finding(
        code=code,
        at=at,
        gpu=gap.gpu if gap else None,
        pci=gap.pci if gap else None,
        severity=Severity.INFO if starting else None,
        recovery=Recovery.NONE if starting else None,
        scope=None if gap is None or gap.gpu else Scope.NODE,
        source=Source.HOST,
        first=(code, gap.key if gap else "", turn, stamp),
        fields=dict(fields),
        text=text + (" (the node is starting)" if starting else ""),
        evidence=(Evidence(source="host", at=stamp, line=text),),
    )
