"""A process whose GPU memory only grows while the GPU has nothing to do.

An engine takes its memory at the start; what grows under work may be cache. What grows for half an hour on an idle GPU
and never falls is lost.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import Scene
from vocab.observations import AnyObservation, GpuProcess

CODE = "memory_leak"
WINDOW_S = 1_800.0
STEPS = 5  # a program that loads grows in one or two steps
LEAST_BYTES = 2**30
IDLE = 0.05
SHOWN = ("memory_used_bytes", "memory_total_bytes", "utilization_ratio")


class Growth(msgspec.Struct):
    """The memory of one process on one GPU since it last fell or the GPU last worked."""

    start: int
    since: float
    last: int
    steps: int = 0
    said: bool = False


class LeakProbe(msgspec.Struct):
    """Follows the processes of each GPU, by ``gpu/pid``."""

    growths: dict[str, Growth] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        busy = seen.readings.utilization_ratio if seen else None
        if seen is None or busy is None or seen.sample.processes is None:
            return ()
        listed = {f"{seen.gpu}/{process.pid}": process for process in seen.sample.processes}
        verdicts = list(self._ended(seen, set(listed)))
        for key, process in listed.items():
            if process.used_bytes is not None:
                verdicts += self._grow(seen, key, process, process.used_bytes, now, idle=busy <= IDLE)
        return verdicts

    def _grow(
        self, seen: Read, key: str, process: GpuProcess, used: int, now: float, *, idle: bool
    ) -> Iterator[Verdict]:
        growth = self.growths.get(key)
        if growth is None or used < growth.last or (not idle and not growth.said):
            was_said = growth is not None and growth.said
            self.growths[key] = Growth(used, now, used)
            if was_said:
                yield from self._clear(seen)
            return
        growth.steps += used > growth.last
        growth.last = used
        grown = used - growth.start
        if growth.said or grown < LEAST_BYTES or growth.steps < STEPS or now - growth.since < WINDOW_S:
            return
        growth.said = True
        yield self._say(seen, process, grown, now - growth.since)

    @staticmethod
    def _say(seen: Read, process: GpuProcess, grown: int, for_s: float) -> Finding:
        text = f"process {process.pid} took {grown / 2**30:.1f} GiB more in {for_s / 60:.0f} min without any work"
        found = finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, fields={"grown_bytes": grown})
        return msgspec.structs.replace(found, pid=process.pid)

    def _ended(self, seen: Read, listed: set[str]) -> Iterator[Verdict]:
        gone = [key for key in self.growths if key.startswith(seen.gpu + "/") and key not in listed]
        said = [self.growths.pop(key).said for key in gone]
        if any(said):
            yield from self._clear(seen)

    def _clear(self, seen: Read) -> Iterator[Verdict]:
        """One condition a GPU: it ends with the last process that was named."""
        if not any(growth.said for key, growth in self.growths.items() if key.startswith(seen.gpu + "/")):
            yield Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu)

    def forget(self, gpu: str) -> None:
        """A reset ends all memory."""
        for key in [key for key in self.growths if key.startswith(gpu + "/")]:
            del self.growths[key]
