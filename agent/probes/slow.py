"""A GPU whose clocks stay far under those of its peers while all of them work, though nothing names a reason.

Two witnesses see it: the clocks, here, and the steps of the engines (slow_steps). What they find is one condition of
the GPU, and it ends with the last of them.

Heat, the power brake and the power cap have words of their own in the mask of clock reasons; what is idle is slow on
purpose. Fail-slow is invisible in utilization, and one such GPU slows every member of its replica.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.peers import Peers
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.slow_steps import CODE, PEERS_NEEDED, SUSTAINED, SlowSteps
from agent.probes.streak import Signals, Turn
from vocab.observations import AnyObservation, ReplicaSeen
from vocab.readings import Readings

SHARE = 0.75  # of the peers' median clock; boost clocks of sound boards differ by a few per cent
BUSY = 0.5
NAMED = 0x1 | 0x2 | 0x20 | 0x40 | 0x80  # idle, clocks set by a user, heat, power brake: said elsewhere, or meant so
SHOWN = ("sm_clock_hz", "utilization_ratio", "clock_reasons", "power_w", "power_limit_w", "performance_state")


def clock_at_work(readings: Readings) -> float | None:
    """The SM clock of a GPU that works, or None."""
    return readings.sm_clock_hz if (readings.utilization_ratio or 0.0) >= BUSY else None


class SlowProbe(msgspec.Struct):
    """Compares clocks of GPUs that work, and hears what the steps of their engines say."""

    peers: Peers = msgspec.field(default_factory=Peers)
    signals: Signals = msgspec.field(default_factory=Signals)
    highest_hz: float | None = None  # of any GPU, ever: no median is over it
    steps: SlowSteps = msgspec.field(default_factory=SlowSteps)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU, or one look at one replica."""
        if isinstance(observation, ReplicaSeen):
            return _without_ends(self.steps.observe(observation, scene, now), self.signals)
        seen = read(observation, scene)
        if seen is None:
            return ()
        ended = _without_ends(self.steps.missed(seen.sample.at, now), self.signals)
        return [*ended, *_without_ends(self._compare(seen, scene, now), self.steps.signals)]

    def _compare(self, seen: Read, scene: Scene, now: float) -> Sequence[Verdict]:
        if seen.readings.sm_clock_hz is None:
            return ()
        self.peers.take(seen.gpu, seen.readings, now)
        highest = self._highest(seen.readings.sm_clock_hz)
        clock = clock_at_work(seen.readings)
        if clock is None or (seen.readings.clock_reasons or 0) & NAMED:
            return ()
        if clock >= SHARE * highest and seen.gpu not in self.signals.streaks:
            return ()  # whatever its peers have, and nothing is to be taken back
        usual, count = self.peers.median_of(seen.gpu, scene, now, clock_at_work)
        if usual is None or count < PEERS_NEEDED:
            return ()
        turn = self.signals.take(seen.gpu, SUSTAINED, now, bad=clock < SHARE * usual)
        if turn is Turn.ENDED:
            return (Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu),)
        if turn is None:
            return ()
        text = f"its SM clock is {clock / 1e6:.0f} MHz where its peers at work have {usual / 1e6:.0f} MHz"
        fields = {"sm_clock_hz": clock, "peers_hz": usual}
        return (finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, fields=fields),)

    def _highest(self, clock: float) -> float:
        if self.highest_hz is None:  # in a memory of before this was kept
            self.highest_hz = max(peer.readings.sm_clock_hz or 0.0 for peer in self.peers.latest.values())
        self.highest_hz = max(self.highest_hz, clock)
        return self.highest_hz

    def forget(self, gpu: str) -> None:
        """A reset GPU is looked at anew."""
        self.signals.forget(gpu)
        self.peers.forget(gpu)
        self.steps.signals.forget(gpu)


def _without_ends(verdicts: Sequence[Verdict], other: Signals) -> Sequence[Verdict]:
    """What one witness says, but for the end of what the other still sees."""
    return [one for one in verdicts if not (isinstance(one, Clear) and other.stands(one.gpu or ""))]
