"""The driver's own condition, once a node: a library that does not match the loaded kernel module, or no module at all.

Then nothing is known of any GPU, and none is at fault: no GPU is missing, lost or held. What runs goes on running, for
it has the old library mapped; what starts would fail. Both end by themselves when the driver answers again.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import node_finding
from agent.probes.presence import same_version
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import BOOT_GRACE_S, Scene
from vocab.events import Source
from vocab.observations import AnyObservation, DriverCall, NodeSeen, SourceState

MISMATCH, NO_DRIVER = "driver_library_mismatch", "driver_not_loaded"
WORDS = frozenset({"LIB_RM_VERSION_MISMATCH", "DRIVER_LIBRARY_MISMATCH"})  # NVML 18
NOT_LOADED = "DRIVER_NOT_LOADED"  # NVML 9
PATIENCE_S = 60.0  # a reload of the modules takes seconds


class VersionProbe(msgspec.Struct):
    """Whether versions differ, and since when no driver is loaded."""

    mismatched: bool = False
    named: bool = False  # with both versions
    was_loaded: bool = False
    unloaded_since: float | None = None
    said: bool = False  # that no driver is loaded
    due: float | None = None

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take an inventory, the state of the source, or a failed call in."""
        match observation:
            case NodeSeen():
                return list(self._node(observation, scene, now))
            case SourceState(source="nvml", state="up"):
                return list(self._good(observation.at, scene))
            case SourceState(source="nvml", state="down", error=str(error)):
                return list(self._failed(error, observation.at, scene, now))
            case DriverCall(gpu=None, state="failed", error=str(error)):
                return list(self._failed(error, observation.at, scene, now))
            case DriverCall(gpu=None, state="returned", call="nvmlInit"):
                return list(self._good(observation.at, scene))
        return ()

    def _node(self, seen: NodeSeen, scene: Scene, now: float) -> Iterator[Verdict]:
        if seen.driver is None:
            if self.was_loaded or not seen.gpus:  # one that lists GPUs and never named its driver merely leaves it out
                self._start_waiting(scene, now)
            return
        self.was_loaded = True
        yield from self._loaded(seen.at)
        if seen.library is None:
            return
        if same_version(seen.driver, seen.library):
            yield from self._match(seen.at, scene)
        else:
            yield from self._differ(seen.at, scene)

    def _failed(self, error: str, at: float, scene: Scene, now: float) -> Iterator[Verdict]:
        word = error.partition(":")[0]
        if word in WORDS:
            yield from self._differ(at, scene)
        elif word == NOT_LOADED:
            self._start_waiting(scene, now)

    def _differ(self, at: float, scene: Scene) -> Iterator[Verdict]:
        kernel, library = scene.driver, scene.library
        if kernel is not None and library is not None and same_version(kernel, library):
            library = None  # the inventory is of before: what differs now is not in it yet
        named = kernel is not None and library is not None
        if self.mismatched and (self.named or not named):
            return
        self.mismatched, self.named = True, named
        scene.mismatched = True
        fields = {"kernel": kernel, "library": library}
        versions = f" (kernel {kernel}, library {library})" if named else ""
        text = f"driver library and kernel module are of different builds{versions}: reload the modules or reboot"
        yield node_finding(MISMATCH, at, text, source=Source.NVML, fields=fields)

    def _good(self, at: float, scene: Scene) -> Iterator[Verdict]:
        yield from self._match(at, scene)
        yield from self._loaded(at)

    def _match(self, at: float, scene: Scene) -> Iterator[Verdict]:
        if self.mismatched:
            self.mismatched = self.named = scene.mismatched = False
            yield Clear(code=MISMATCH, at=at)

    def _start_waiting(self, scene: Scene, now: float) -> None:
        if self.unloaded_since is None:
            self.unloaded_since = now
            booted = scene.boot_at + BOOT_GRACE_S if scene.boot_at is not None else now
            self.due = max(now + PATIENCE_S, booted)

    def _loaded(self, at: float) -> Iterator[Verdict]:
        self.unloaded_since, self.due = None, None
        if self.said:
            self.said = False
            yield Clear(code=NO_DRIVER, at=at)

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Say that no driver is loaded, once a reload would be over; a node that still boots gets more time."""
        if self.due is None or now < self.due:
            return ()
        if scene.booting:
            self.due = now + PATIENCE_S
            return ()
        self.due, self.said = None, True
        text = "the NVIDIA driver is not loaded: modprobe nvidia, or see dmesg for why it failed"
        return (node_finding(NO_DRIVER, now, text, source=Source.NVML),)

    def next_deadline(self) -> float | None:
        """When a missing driver counts."""
        return self.due
