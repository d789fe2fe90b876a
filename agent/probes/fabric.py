"""The NVLink fabric: whether the GPU has registered with it (fabric_incomplete), and what the fabric says of itself
(fabric_unhealthy). Without a completed registration CUDA does not start; the GPU is sound all the same.

State 3 with status 0 is good, and nothing else; state 0 is a GPU without a fabric. In the health mask 1 means *bad*
in the two-bit flags and *good* in the configuration's four bits (nvml.h).
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import BOOT_GRACE_S, Scene
from vocab.observations import AnyObservation

INCOMPLETE, UNHEALTHY = "fabric_incomplete", "fabric_unhealthy"
NOT_SUPPORTED, COMPLETED = 0, 3
GRACE_S = 300.0  # a fabric manager registers eight GPUs in tens of seconds; five minutes after the driver is a fault
FLAGS = {
    0: "degraded bandwidth",
    2: "route recovery",
    4: "route unhealthy",
    6: "access timeout recovery",
}  # bit -> flag
CONFIGURATION_BIT = 8
CONFIGURATIONS = {
    2: "wrong system GUID",
    3: "wrong chassis serial",
    4: "no partition",
    5: "too few NVLinks",
    6: "incompatible GPU firmware",
    7: "invalid location",
    8: "invalid state",
}
SHOWN = ("fabric_state", "fabric_status", "fabric_health_mask")


def problems_of(mask: int) -> list[str]:
    """What the health mask names as wrong."""
    found = [words for bit, words in FLAGS.items() if (mask >> bit) & 0b11 == 1]
    configuration = (mask >> CONFIGURATION_BIT) & 0b1111
    return found if configuration < 2 else [*found, CONFIGURATIONS.get(configuration, f"configuration {configuration}")]


class Registration(msgspec.Struct):
    """Since when a GPU's registration is not complete, what was said, and what the mask said last."""

    since: float | None = None
    was_complete: bool = False
    said: bool = False
    problems: list[str] = []
    turn: int = 0


class FabricProbe(msgspec.Struct):
    """Follows the registration of each GPU."""

    gpus: dict[str, Registration] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None or (seen.readings.fabric_state is None and seen.readings.fabric_health_mask is None):
            return ()
        known = self.gpus.setdefault(seen.gpu, Registration())
        return [*self._state(seen, known, scene, now), *self._health(seen, known)]

    def _state(self, seen: Read, known: Registration, scene: Scene, now: float) -> Iterator[Verdict]:
        state, status = seen.readings.fabric_state, seen.readings.fabric_status
        if state is None or state == NOT_SUPPORTED:
            return
        if state == COMPLETED and not status:
            known.since, known.was_complete = None, True
            if known.said:
                known.said = False
                yield Clear(code=INCOMPLETE, at=seen.sample.at, gpu=seen.gpu)
            return
        known.since = now if known.since is None else known.since
        if known.said or now < self._due(known, state, scene):
            return
        known.said, known.turn = True, known.turn + 1
        words = (
            f"completed with status {status}" if state == COMPLETED else "not started" if state == 1 else "in progress"
        )
        yield finding(
            seen.sample,
            seen.gpu,
            INCOMPLETE,
            f"the GPU's registration with the NVLink fabric is {words}",
            names=SHOWN,
            first=(INCOMPLETE, known.turn, state, status),
            fields={"state": state, "status": status},
        )

    @staticmethod
    def _due(known: Registration, state: int, scene: Scene) -> float:
        """When it counts: a failed registration once the node is up, one under way after the fabric's time."""
        since = known.since or 0.0
        start = scene.boot_at + BOOT_GRACE_S if scene.boot_at is not None else None
        if state == COMPLETED:
            return max(since, start or since)
        if start is None or known.was_complete:
            return since + GRACE_S
        return max(since, start)

    @staticmethod
    def _health(seen: Read, known: Registration) -> Iterator[Verdict]:
        mask = seen.readings.fabric_health_mask
        if mask is None:
            return
        problems = problems_of(mask)
        if problems == known.problems:
            return
        worse, known.problems = not set(problems) <= set(known.problems), problems
        if not problems:
            yield Clear(code=UNHEALTHY, at=seen.sample.at, gpu=seen.gpu)
        elif worse:
            known.turn += 1
            yield finding(
                seen.sample,
                seen.gpu,
                UNHEALTHY,
                f"the NVLink fabric reports: {', '.join(problems)}",
                names=SHOWN,
                first=(UNHEALTHY, known.turn, mask),
                fields={"mask": f"0x{mask:x}", "problems": problems},
            )

    def forget(self, gpu: str) -> None:
        """A reset GPU registers anew."""
        known = self.gpus.get(gpu)
        if known is not None:
            self.gpus[gpu] = Registration(turn=known.turn)
