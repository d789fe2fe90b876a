"""The probes of readings, and what they remember: of a GPU's samples, of its presence, of driver, host and services.

One field a probe, so that the judge's snapshot holds them all. To the judge they are one probe: an observation goes
only to those that take its kind, as the table says, in the order of the fields. Nine samples of ten hold nothing of
what is read slowly: the probes of that alone are not asked then.
"""

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec

from agent.probes.activity import ActivityProbe
from agent.probes.advice import AdviceProbe
from agent.probes.board import BoardProbe
from agent.probes.calls import CallsProbe
from agent.probes.canary import CanaryProbe
from agent.probes.checks import ChecksProbe
from agent.probes.container import ContainerProbe
from agent.probes.degraded import DegradedProbe
from agent.probes.ecc import EccProbe
from agent.probes.fabric import FabricProbe
from agent.probes.figures import Read, read
from agent.probes.hang import HangProbe
from agent.probes.incomplete import IncompleteProbe
from agent.probes.leak import LeakProbe
from agent.probes.limit import LimitProbe
from agent.probes.link_errors import LinkErrorsProbe
from agent.probes.link_speed import LinkSpeedProbe
from agent.probes.links import LinksProbe
from agent.probes.lost import LostProbe
from agent.probes.margin import MarginProbe
from agent.probes.memory import MemoryProbe
from agent.probes.mig import MigProbe
from agent.probes.nic import NicProbe
from agent.probes.overdraw import OverdrawProbe
from agent.probes.pcie import PcieProbe
from agent.probes.power import PowerProbe
from agent.probes.presence import PresenceProbe
from agent.probes.probe import Verdict
from agent.probes.profiling import ProfilingProbe
from agent.probes.remap import RemapProbe
from agent.probes.replays import ReplaysProbe
from agent.probes.retired import RetiredProbe
from agent.probes.scene import Scene
from agent.probes.service import ServiceProbe
from agent.probes.slow import SlowProbe
from agent.probes.thermal import ThermalProbe
from agent.probes.version import VersionProbe
from agent.probes.visible import VisibleProbe
from vocab.observations import (
    AnyObservation,
    Check,
    ClockStep,
    DriverCall,
    DriverEvent,
    GpuSample,
    HostSample,
    KernelRecord,
    NodeSeen,
    ProcessSeen,
    ReplicaSeen,
    Restart,
    ServiceSeen,
    SourceState,
)
from vocab.readings import Readings

_new = msgspec.field


TAKES: dict[type, frozenset[str]] = {
    GpuSample: frozenset(
        {
            *("lost", "mig", "advice", "ecc", "remap", "retired", "links", "link_errors", "fabric", "pcie", "replays"),
            *("thermal", "margin", "power", "limit", "slow", "profiling", "activity", "memory", "leak"),
            *("degraded", "incomplete", "container", "board", "link_speed", "overdraw"),
        }
    ),
    NodeSeen: frozenset({"presence", "version", "mig", "calls", "hang", "incomplete", "visible", "nic", "service"}),
    SourceState: frozenset({"presence", "version", "degraded"}),
    DriverCall: frozenset({"lost", "version", "calls", "hang", "advice"}),
    DriverEvent: frozenset({"advice", "mig"}),
    ClockStep: frozenset({"calls"}),
    Restart: frozenset({"calls"}),
    HostSample: frozenset({"hang", "nic"}),
    ProcessSeen: frozenset({"hang", "memory"}),
    ReplicaSeen: frozenset({"memory", "canary", "container", "visible", "slow"}),
    KernelRecord: frozenset({"container", "hang"}),
    Check: frozenset({"canary", "checks"}),
    ServiceSeen: frozenset({"service"}),
}
OF_FIGURES = frozenset(  # they need nothing but the figures of a sample that could be read
    {
        *("ecc", "remap", "retired", "links", "link_errors", "fabric", "pcie", "replays", "thermal", "margin"),
        *("power", "limit", "slow", "profiling", "activity", "memory", "leak", "incomplete"),
        *("link_speed", "overdraw"),
    }
)
SLOW: dict[str, tuple[str, ...]] = {  # probes to which a sample without any of these readings says nothing at all
    "ecc": ("ecc_uncorrectable", "ecc_correctable", "ecc_uncorrectable_lifetime", "ecc_correctable_lifetime"),
    "remap": ("remap_pending", "remap_failed", "sram_threshold_exceeded"),
    "retired": ("retired_pages_sbe", "retired_pages_dbe", "retirement_pending"),
    "links": (),  # these three look at links alone
    "link_errors": (),
    "link_speed": (),
    "fabric": ("fabric_state", "fabric_health_mask"),
    "pcie": ("pcie_width", "pcie_generation"),
    "replays": ("pcie_replays",),
    "memory": (),  # and these at processes
    "leak": (),
}
_slow_of = attrgetter(*dict.fromkeys(name for names in SLOW.values() for name in names))
_NOTHING = _slow_of(Readings())
TIMED = ("lost", "presence", "version", "calls", "hang", "power", "incomplete", "service")


class Gauges(msgspec.Struct, dict=True):
    """All probes of readings, in the order in which they are asked: first who is lost, for others look at that."""

    lost: LostProbe = _new(default_factory=LostProbe)
    presence: PresenceProbe = _new(default_factory=PresenceProbe)
    version: VersionProbe = _new(default_factory=VersionProbe)
    mig: MigProbe = _new(default_factory=MigProbe)
    calls: CallsProbe = _new(default_factory=CallsProbe)
    hang: HangProbe = _new(default_factory=HangProbe)
    advice: AdviceProbe = _new(default_factory=AdviceProbe)
    ecc: EccProbe = _new(default_factory=EccProbe)
    remap: RemapProbe = _new(default_factory=RemapProbe)
    retired: RetiredProbe = _new(default_factory=RetiredProbe)
    links: LinksProbe = _new(default_factory=LinksProbe)
    link_errors: LinkErrorsProbe = _new(default_factory=LinkErrorsProbe)
    link_speed: LinkSpeedProbe = _new(default_factory=LinkSpeedProbe)
    fabric: FabricProbe = _new(default_factory=FabricProbe)
    pcie: PcieProbe = _new(default_factory=PcieProbe)
    replays: ReplaysProbe = _new(default_factory=ReplaysProbe)
    thermal: ThermalProbe = _new(default_factory=ThermalProbe)
    margin: MarginProbe = _new(default_factory=MarginProbe)
    power: PowerProbe = _new(default_factory=PowerProbe)
    limit: LimitProbe = _new(default_factory=LimitProbe)
    overdraw: OverdrawProbe = _new(default_factory=OverdrawProbe)
    slow: SlowProbe = _new(default_factory=SlowProbe)
    profiling: ProfilingProbe = _new(default_factory=ProfilingProbe)
    activity: ActivityProbe = _new(default_factory=ActivityProbe)
    memory: MemoryProbe = _new(default_factory=MemoryProbe)
    leak: LeakProbe = _new(default_factory=LeakProbe)
    degraded: DegradedProbe = _new(default_factory=DegradedProbe)
    board: BoardProbe = _new(default_factory=BoardProbe)
    incomplete: IncompleteProbe = _new(default_factory=IncompleteProbe)
    canary: CanaryProbe = _new(default_factory=CanaryProbe)
    checks: ChecksProbe = _new(default_factory=ChecksProbe)
    container: ContainerProbe = _new(default_factory=ContainerProbe)
    visible: VisibleProbe = _new(default_factory=VisibleProbe)
    nic: NicProbe = _new(default_factory=NicProbe)
    service: ServiceProbe = _new(default_factory=ServiceProbe)

    @cached_property
    def _by_kind(self) -> dict[type, tuple[Any, ...]]:
        names = self.__struct_fields__
        return {
            kind: tuple(
                (getattr(self, name), kind is GpuSample and name in OF_FIGURES) for name in names if name in taken
            )
            for kind, taken in TAKES.items()
        }

    @cached_property
    def _quick(self) -> tuple[Any, ...]:
        """Of those that take samples: the ones that a quick sample can say something to."""
        slow = {id(getattr(self, name)) for name in SLOW}
        return tuple(pair for pair in self._by_kind[GpuSample] if id(pair[0]) not in slow)

    @cached_property
    def _timed(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in TIMED)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """What the probes of this kind of observation find."""
        verdicts: list[Verdict] = []
        seen = read(observation, scene)
        asked = self._by_kind.get(type(observation), ()) if seen is None or not is_quick(seen) else self._quick
        for probe, of_figures in asked:
            if not of_figures:
                found = probe.observe(observation, scene, now)
            elif seen is not None:
                found = probe.observe(seen, scene, now)
            else:
                continue
            if found:
                verdicts += found
        return verdicts

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """What has become due."""
        return [verdict for probe in self._timed for verdict in probe.tick(scene, now)]

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do."""
        return min((due for probe in self._timed if (due := probe.next_deadline()) is not None), default=None)

    def forget(self, gpu: str) -> None:
        """A GPU was reset, or its node rebooted."""
        for probe, _ in self._by_kind[GpuSample]:
            probe.forget(gpu)

    def doubt(self, gpu: str, due: float) -> None:
        """A person called a GPU healthy: what is still wrong with it is found again, as if for the first time."""
        self.forget(gpu)
        self.presence.doubt(gpu, due)
        self.calls.doubt(gpu)

    def known(self) -> list[str]:
        """The GPUs that should be here."""
        return list(self.presence.known)


def is_quick(seen: Read) -> bool:
    """Whether a sample holds nothing of what the probes of slow readings look at."""
    sample = seen.sample
    return sample.processes is None and not sample.links and bool(_slow_of(seen.readings) == _NOTHING)
