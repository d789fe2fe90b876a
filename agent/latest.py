"""What the agent knows right now, in memory: for its API, its metrics and its reports. Nothing here decides."""

from collections import OrderedDict

import msgspec

from agent.checks.baseline import is_sound
from agent.probes.scene import Scene
from agent.whole import CARRY_S, joined
from vocab.catalogue.boards import islands, reset_group
from vocab.events import Event, epoch_s
from vocab.messages import NodeFacts
from vocab.observations import AnyObservation, GpuProcess, GpuSample, NodeSeen, ReplicaSeen, SourceState
from vocab.states import ActionKind, Level

RECENT_EVENTS = 256
STALE_S = 15.0  # a reading older than this is not shown as one: slow readings come every 10 s


class SourceView(msgspec.Struct, frozen=True):
    """How one source of readings is."""

    source: str
    state: str
    since: float
    error: str | None = None


class GpuView(msgspec.Struct, frozen=True):
    """The last sample of one GPU; ``good_at`` is when it was last read with success.

    ``wide`` is the last sample for which everything was read, ``wide_at`` when.
    """

    newest: GpuSample
    seen: float
    good_at: float | None
    wide: GpuSample | None = None
    wide_at: float = 0.0

    @property
    def sample(self) -> GpuSample:
        """The whole picture."""
        return joined(self.wide, self.newest)

    @property
    def processes(self) -> tuple[GpuProcess, ...] | None:
        """Those of the whole picture."""
        carried = self.wide.processes if self.wide is not None and not self.newest.error else None
        return carried if self.newest.processes is None else self.newest.processes


class Latest:
    """The last of everything."""

    def __init__(self, level: Level, version: str, address: str, *, new_boot: bool = False) -> None:
        self._new_boot = new_boot
        self._sound: set[str] = set()  # GPUs that have passed the baseline checks in this boot
        self._level = level
        self._version = version
        self._address = address
        self.seen: NodeSeen | None = None
        self.gpus: dict[str, GpuView] = {}
        self.sources: dict[str, SourceView] = {}
        self.events: OrderedDict[str, Event] = OrderedDict()
        self.abilities: tuple[ActionKind, ...] | None = None
        self.units: tuple[str, ...] = ()  # of the site, that may be stopped here
        self.remembers_since: float | None = None
        self.events_since: float | None = None  # this process's start: what was seen before is not here
        self._replicas: dict[str, tuple[ReplicaSeen, float]] = {}

    def take(self, observation: AnyObservation, scene: Scene, now: float) -> None:
        """Note what this observation shows."""
        match observation:
            case GpuSample():
                self._sample(observation, scene, now)
            case NodeSeen():
                self.seen = observation
                here = {gpu.uuid for gpu in observation.gpus}
                self.gpus = {gpu: view for gpu, view in self.gpus.items() if gpu in here}
            case ReplicaSeen():
                self._replicas.pop(observation.replica, None)
                if observation.exit is None and observation.phase != "stopped":
                    self._replicas[observation.replica] = (observation, now)
            case SourceState():
                before = self.sources.get(observation.source)
                since = before.since if before and before.state == observation.state else observation.at
                view = SourceView(observation.source, observation.state, since, observation.error)
                self.sources[observation.source] = view

    def _sample(self, sample: GpuSample, scene: Scene, now: float) -> None:
        gpu = scene.sampled(sample)
        if gpu is None:
            return
        good = sample.error is None and sample.readings is not None
        before = self.gpus.get(gpu)
        last_good = before.good_at if before else None
        wide, wide_at = (before.wide, before.wide_at) if before and now - before.wide_at <= CARRY_S else (None, 0.0)
        if wide is None or sample.processes is not None or sample.links:  # nothing is carried on and on
            wide, wide_at = sample, now
        view = GpuView(sample, now, sample.at if good else last_good, wide if good else None, wide_at)
        if self._new_boot and good and gpu not in self._sound and is_sound(view.sample):
            self._sound.add(gpu)
        self.gpus[gpu] = view

    def judged(self, event: Event) -> None:
        """Note an event or a new revision of one."""
        self.events[event.id] = event
        self.events.move_to_end(event.id)
        while len(self.events) > RECENT_EVENTS:
            _, gone = self.events.popitem(last=False)
            self.events_since = max(self.events_since or 0.0, epoch_s(gone.at)) if gone.at else self.events_since

    @property
    def proven(self) -> frozenset[str]:
        """GPUs that were read with success by this process and whose last read did not fail.

        In a boot that no agent of this node has seen yet, only those that have passed the baseline checks once.
        """
        good = (gpu for gpu, view in self.gpus.items() if view.good_at is not None and not view.newest.error)
        return frozenset(gpu for gpu in good if not self._new_boot or gpu in self._sound)

    def listed(self) -> dict[str, frozenset[int]]:
        """The processes that the driver lists, by GPU; without the GPUs that do not tell."""
        told = {gpu: view.processes for gpu, view in self.gpus.items()}
        return {gpu: frozenset(one.pid for one in found) for gpu, found in told.items() if found is not None}

    def fresh(self, gpu: str, now: float) -> GpuSample | None:
        """The last sample of a GPU, if it is young enough to be shown."""
        view = self.gpus.get(gpu)
        return view.sample if view is not None and now - view.seen <= STALE_S else None

    def engines(self, now: float) -> dict[str, ReplicaSeen]:
        """The last look at each replica, if it is young enough to be shown."""
        return {name: seen for name, (seen, at) in self._replicas.items() if now - at <= STALE_S}

    @property
    def unknown_because(self) -> str | None:
        """Why no GPU can be read, if none can."""
        nvml, dcgm = self.sources.get("nvml"), self.sources.get("dcgm")
        if nvml is None or nvml.state != "down" or (dcgm is not None and dcgm.state != "down"):
            return None
        return nvml.error or "the driver cannot be read"

    def facts(self, node: str, boot_id: str) -> NodeFacts | None:
        """What the node is; None until its inventory, or the reason why there is none, is known."""
        seen, unknown = self.seen, self.unknown_because
        if seen is None and unknown is None:
            return None
        gpus = seen.gpus if seen else ()
        board = gpus[0].name or "" if gpus else ""
        return NodeFacts(
            node=node,
            boot_id=seen.boot_id if seen else boot_id,
            boot_at=seen.boot_at if seen else None,
            booting=seen.booting if seen else False,
            virtual=seen.virtual if seen else False,
            level=self._level,
            version=self._version,
            driver=seen.driver if seen else None,
            cuda=seen.cuda if seen else None,
            address=self._address,
            gpus=gpus,
            reset_group=reset_group(board, [gpu.uuid for gpu in gpus]),
            islands=islands(board, [gpu.uuid for gpu in gpus]),
            passed_on=tuple(device.pci for device in (seen.pci_devices or () if seen else ()) if device.is_passed_on),
            period_s=(seen.period_s if seen else None) or 1.0,
            unknown_because=unknown,
            remembers_since=self.remembers_since,
            abilities=self.abilities,
            units=self.units,
        )

    def ready(self) -> tuple[bool, str]:
        """Whether this agent watches what it should, and if not, why."""
        down = [view for view in self.sources.values() if view.state == "down"]
        if down:
            return False, "; ".join(f"{view.source} is down: {view.error or 'no reason given'}" for view in down)
        if self.seen is None:
            return False, "the node's inventory is not known yet"
        return True, "watching"
