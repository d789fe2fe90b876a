"""A container that lost its devices: the replica cannot reach the driver any more, and the host can.

A reload of systemd rewrites device cgroups; what has a context keeps serving, nothing new can start, and only a new
container helps. The host must have read the replica's GPUs well after the replica failed, and the kernel must have said
nothing of them; otherwise it is the GPU, or the driver, and others judge that.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.catalogue.cuda import known_error
from vocab.events import Source
from vocab.observations import AnyObservation, GpuSample, KernelRecord, ReplicaSeen

CODE = "container_device_access_lost"
CUT_OFF = frozenset({"UNKNOWN", "NO_PERMISSION", "OPERATING_SYSTEM", "GPU_NOT_FOUND"})  # NVML 999, 4, 17, 28
CUDA_CUT_OFF = frozenset({46, 100, 101, 999})  # devices unavailable, no device, invalid device, unknown
WELL = frozenset({"", "0", "SUCCESS"})
SILENCE_S = 120.0  # a GPU in trouble has said so in the kernel log within that


class Cut(msgspec.Struct):
    """A replica that cannot reach the driver: since when, with what error, and whether that was said."""

    since: float
    error: str
    pids: tuple[int, ...]
    said: bool = False


class ContainerProbe(msgspec.Struct):
    """The replicas, those that are cut off, and when each GPU was last read well or named by the kernel."""

    gpus: dict[str, tuple[str, ...]] = {}  # by replica
    deployments: dict[str, str | None] = {}
    cuts: dict[str, Cut] = {}
    good: dict[str, float] = {}
    spoke: dict[str, float] = {}  # by PCI address
    turn: int = 0

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a replica, a read of a GPU, or a line of the driver in."""
        match observation:
            case ReplicaSeen():
                return list(self._replica(observation, scene, now))
            case GpuSample():
                gpu = scene.sampled(observation)
                if gpu is not None and observation.error is None and observation.readings is not None:
                    self.good[gpu] = now
                    if self.cuts:
                        return list(self._judge(observation.at, scene, now))
            case KernelRecord(line=str(line)) if "NVRM: Xid" in line or "fallen off" in line:
                self.spoke |= {pci: now for pci in scene.addresses if pci in line}
        return ()

    def _replica(self, seen: ReplicaSeen, scene: Scene, now: float) -> Iterator[Verdict]:
        name = seen.replica
        self.gpus[name] = tuple(m.gpu for m in seen.members) or seen.gpus or self.gpus.get(name, ())
        self.deployments[name] = seen.deployment or self.deployments.get(name)
        cut, error = self.cuts.get(name), _word(seen.error)
        anew = seen.exit is not None or seen.phase in {"starting", "stopped"} or _is_another(cut, seen)
        if cut is not None and (anew or error in WELL):
            del self.cuts[name]
            if cut.said:
                yield Clear(code=CODE, at=seen.at, name=name)
        if _is_cut_off(seen.error) and seen.exit is None and seen.phase not in {"starting", "stopped"}:
            self.cuts.setdefault(name, Cut(now, error or "", seen.pids))
            yield from self._judge(seen.at, scene, now)

    def _judge(self, at: float, scene: Scene, now: float) -> Iterator[Verdict]:
        for name, cut in self.cuts.items():
            gpus = self.gpus.get(name, ())
            if cut.said or not gpus or not all(self._is_sound(gpu, cut, scene, now) for gpu in gpus):
                continue
            cut.said, self.turn = True, self.turn + 1
            text = f"{name} cannot reach the driver ({cut.error}), and the host can: its container lost the devices"
            fields = {
                "replica": name,
                "deployment": self.deployments.get(name),
                "gpus": list(gpus),
                "error": cut.error,
            }
            pid = cut.pids[0] if cut.pids else None
            yield node_finding(CODE, at, text, source=Source.ENGINE, pid=pid, first=(name, self.turn), fields=fields)

    def _is_sound(self, gpu: str, cut: Cut, scene: Scene, now: float) -> bool:
        spoke = self.spoke.get(scene.address(gpu) or "")
        silent = spoke is None or now - spoke > SILENCE_S
        return gpu not in scene.absent and silent and self.good.get(gpu, float("-inf")) >= cut.since

    def forget(self, gpu: str) -> None:
        """What was read before a reset says nothing of what comes."""
        self.good.pop(gpu, None)


def _word(error: str | int | None) -> str | None:
    return None if error is None else str(error).removeprefix("NVML_ERROR_").removeprefix("cudaError")


def _is_cut_off(error: str | int | None) -> bool:
    known = known_error(error)
    return _word(error) in CUT_OFF or (known is not None and known.code in CUDA_CUT_OFF)


def _is_another(cut: Cut | None, seen: ReplicaSeen) -> bool:
    return cut is not None and bool(cut.pids) and bool(seen.pids) and not set(cut.pids) & set(seen.pids)
