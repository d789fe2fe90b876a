"""What the driver itself asks for: its recovery action (NVML field 230), and *reset required* (NVML 16).

The value returns to 0 by itself once the action was taken, or when the driver no longer sees a need. The words of the
actions and what each means to us stand in one table, for this and for Xid 154.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.catalogue.recovery import advice
from vocab.events import Source
from vocab.observations import AnyObservation, DriverCall, DriverEvent, GpuSample

ACTION, RESET = "recovery_action", "gpu_requires_reset"
REQUIRED = frozenset({"RESET_REQUIRED", "GPU_REQUIRES_RESET"})  # NVML 16, and nvidia-smi's words for it
SHOWN = ("recovery_action", "utilization_ratio", "memory_used_bytes", "temperature_c", "power_w", "fan_ratio")


class AdviceProbe(msgspec.Struct):
    """Remembers the action that stands for each GPU, and which of them were said to need a reset."""

    actions: dict[str, int] = {}
    required: set[str] = set()
    turns: dict[str, int] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a sample, a failed call, or the driver's own event."""
        match observation:
            case GpuSample():
                gpu = scene.sampled(observation)
                return () if gpu is None else self._sampled(observation, gpu)
            case DriverEvent(type="recovery_action", data=int(data)):
                gpu = scene.named(gpu=observation.gpu, pci=observation.pci, index=observation.index)
                sample = GpuSample(at=observation.at, node=observation.node, gpu=gpu, source=observation.source)
                return () if gpu is None else self._advised(sample, gpu, data)
            case DriverCall(gpu=gpu, error=error) if gpu is not None and error in REQUIRED:
                return self._require(
                    gpu, GpuSample(at=observation.at, gpu=gpu), f"{observation.call} fails with {error}"
                )
        return ()

    def _sampled(self, sample: GpuSample, gpu: str) -> Sequence[Verdict]:
        verdicts: list[Verdict] = []
        wanting = (
            sample.error
            if sample.error in REQUIRED
            else next((e for e in sample.errors.values() if e in REQUIRED), None)
        )
        if wanting is not None:
            verdicts += self._require(gpu, sample, f"a read fails with {wanting}")
        action = sample.readings.recovery_action if sample.readings else None
        if action is not None:
            verdicts += self._advised(sample, gpu, action)
        return verdicts

    def _require(self, gpu: str, sample: GpuSample, text: str) -> Sequence[Verdict]:
        if gpu in self.required:
            return ()
        self.required.add(gpu)
        turn = self._turn(RESET, gpu)
        source = Source.DCGM if sample.source == "dcgm" else Source.NVML
        return (node_finding(RESET, sample.at, text, gpu=gpu, source=source, first=(turn,)),)

    def _advised(self, sample: GpuSample, gpu: str, action: int) -> Sequence[Verdict]:
        before = self.actions.get(gpu, 0)
        if action == before:
            return ()
        if action == 0:
            del self.actions[gpu]
            return (Clear(code=ACTION, at=sample.at, gpu=gpu),)
        self.actions[gpu] = action
        asked = advice(action)
        fields = {"from": before, "to": action, "action": asked.name}
        text = f"the driver asks for: {asked.name}{_strange(sample)}"
        return (
            finding(
                sample,
                gpu,
                ACTION,
                text,
                names=SHOWN,
                first=(self._turn(ACTION, gpu), ACTION, action),
                severity=asked.severity,
                recovery=asked.recovery,
                fields=fields,
            ),
        )

    def _turn(self, code: str, gpu: str) -> int:
        key = f"{code}/{gpu}"
        self.turns[key] = self.turns.get(key, 0) + 1
        return self.turns[key]

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew; ``turns`` stays, for it tells its events apart."""
        self.actions.pop(gpu, None)
        self.required.discard(gpu)


def _strange(sample: GpuSample) -> str:
    """What else does not fit in the same sample, for the reader."""
    signs = [f"{name} cannot be read ({error})" for name, error in sorted(sample.errors.items())]
    busy = sample.readings.utilization_ratio if sample.readings else None
    if busy and not sample.processes and sample.processes is not None:
        signs.append(f"{busy:.0%} busy with no process")
    return f"; {', '.join(signs)}" if signs else ""
