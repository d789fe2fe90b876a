"""Memory of a GPU against the processes on it.

``unknown_consumer``: memory is used that no process owns up to, so nothing can be placed there and nothing may be
repaired: somebody's work may be in it. ``process_info_mismatch``: the list of processes cannot be right, for a replica
of ours or plain activity shows that it lacks one, or it claims more than is used. What is not known (no list, a process
without a figure, MIG) is no reason for either.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.observations import AnyObservation, ProcessSeen, ReplicaSeen

UNKNOWN, MISMATCH = "unknown_consumer", "process_info_mismatch"
DRIVER_BYTES = 2 * 2**30  # what driver, firmware and contexts keep that no process is charged with: up to 1.5 GiB seen
DRIVER_SHARE = 0.04
BUSY = 0.5
SUSTAINED = Patience()
SHOWN = ("memory_used_bytes", "memory_reserved_bytes", "memory_total_bytes", "utilization_ratio", "power_w")


class MemoryProbe(msgspec.Struct):
    """Adds up what processes hold on each GPU."""

    replicas: dict[str, list[str]] = {}  # living replica -> its GPUs
    claims: dict[str, dict[str, int]] = {}  # process by pid -> GPU -> bytes, as the host saw it
    signals: Signals = msgspec.field(default_factory=Signals)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a sample, a process or a replica in."""
        match observation:
            case ReplicaSeen():
                self._replica(observation)
            case ProcessSeen():
                self._process(observation)
            case _:
                seen = read(observation, scene)
                if seen is not None:
                    return list(self._judge(seen, now))
        return ()

    def _replica(self, seen: ReplicaSeen) -> None:
        if not seen.serves:
            return  # what it owns up to is on the list; for what is not, it does not answer
        if seen.exit is not None or seen.phase == "stopped":
            self.replicas.pop(seen.replica, None)
        elif gpus := [member.gpu for member in seen.members] or list(seen.gpus):
            self.replicas[seen.replica] = gpus

    def _process(self, seen: ProcessSeen) -> None:
        if seen.state == "gone":
            self.claims.pop(str(seen.pid), None)
        elif seen.used_bytes:
            self.claims[str(seen.pid)] = dict(seen.used_bytes)

    def _judge(self, seen: Read, now: float) -> Iterator[Verdict]:
        used, processes = seen.readings.memory_used_bytes, seen.sample.processes
        if used is None or processes is None or seen.readings.mig_mode:
            return
        listed = {str(process.pid): process.used_bytes for process in processes}
        unlisted = {pid: held[seen.gpu] for pid, held in self.claims.items() if seen.gpu in held and pid not in listed}
        if any(held is None for held in listed.values()):
            return  # someone owns up, though nobody says to how much
        owned = sum(held or 0 for held in listed.values())
        slack = max(DRIVER_BYTES, DRIVER_SHARE * (seen.readings.memory_total_bytes or 0))
        loose = used - (seen.readings.memory_reserved_bytes or 0) - owned
        ours = any(seen.gpu in gpus for gpus in self.replicas.values())
        known = ours or sum(unlisted.values()) >= loose - slack
        yield from self._say(seen, UNKNOWN, now, bad=loose > slack and not known, loose=loose)
        lacks = loose > slack and known
        busy = not listed and not ours and (seen.readings.utilization_ratio or 0.0) >= BUSY
        yield from self._say(seen, MISMATCH, now, bad=lacks or busy or owned > used + slack, loose=loose)

    def _say(self, seen: Read, code: str, now: float, *, bad: bool, loose: int) -> Iterator[Verdict]:
        turn = self.signals.take(f"{seen.gpu}/{code}", SUSTAINED, now, bad=bad)
        if turn is Turn.ENDED:
            yield Clear(code=code, at=seen.sample.at, gpu=seen.gpu)
        if turn is not Turn.RAISED:
            return
        pids = sorted(process.pid for process in seen.sample.processes or ())
        busy = seen.readings.utilization_ratio or 0.0
        if code == UNKNOWN:
            text = f"{loose / 2**30:.1f} GiB are used that no listed process owns"
        else:
            apart = f"{loose / 2**30:.1f} GiB apart"
            text = f"the list of processes cannot be right: {len(pids)} listed, {busy:.0%} busy, {apart}"
        yield finding(seen.sample, seen.gpu, code, text, names=SHOWN, fields={"loose_bytes": loose, "pids": pids})

    def forget(self, gpu: str) -> None:
        """A reset ends all memory."""
        self.signals.forget(gpu)
