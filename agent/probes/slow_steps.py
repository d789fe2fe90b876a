"""A GPU whose engine steps slower than equal engines beside it, or, where it has none, than it used to itself.

What is compared is how many times its floor a step took (vocab.beat): the floor is counted from the step's own shapes,
so that different prompts and batches do not matter. Fail-slow is seen in no counter of the GPU.

An engine that has left cannot take back what it told of its GPU, and nobody else can: so that ends with it, and the
next engine there is a witness of its own.
"""

from collections.abc import Sequence
from statistics import median

import msgspec

from agent.probes.figures import node_finding
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.events import Source
from vocab.observations import AnyObservation, ReplicaSeen

CODE = "slow_gpu"
PEERS_NEEDED = 2
SUSTAINED = Patience(polls=3, lasts_s=120.0, calm_polls=3)
OVER_PEERS = 1.33  # times their median; equal boards differ by a few per cent
OVER_ITSELF = 2.0  # times its own usual value, where nobody is there to compare with
FRESH_S = 65.0
GONE_S = 600.0  # without a look at it: it has left, whoever missed its end


class Pace(msgspec.Struct):
    """What one engine last told."""

    at: float
    deployment: str | None
    over_floor: float
    gpu: str = ""
    seen: float = 0.0  # when it was last looked at, at work or idle


class SlowSteps(msgspec.Struct):
    """Compares engines of one deployment on one node, each on a GPU of its own. One of two witnesses of SlowProbe."""

    paces: dict[str, Pace] = {}
    signals: Signals = msgspec.field(default_factory=Signals)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one look at one replica."""
        if not isinstance(observation, ReplicaSeen):
            return ()
        seen, gpus = observation, tuple(member.gpu for member in observation.members) or observation.gpus
        if seen.exit is not None or seen.phase == "stopped":
            return self._leave(seen.replica, seen.at)
        if seen.replica in self.paces:
            self.paces[seen.replica].seen = now
        if len(gpus) != 1 or seen.over_floor is None or not seen.running:
            return ()
        self.paces[seen.replica] = Pace(now, seen.deployment, seen.over_floor, gpus[0], now)
        peers = self._peers(seen, now)
        usual = median(peers) if len(peers) >= PEERS_NEEDED else None
        bad = seen.over_floor > OVER_PEERS * usual if usual is not None else (seen.over_usual or 0.0) > OVER_ITSELF
        turn = self.signals.take(gpus[0], SUSTAINED, now, bad=bad)
        if turn is Turn.ENDED:
            return (Clear(code=CODE, at=seen.at, gpu=gpus[0]),)
        return () if turn is None else (_finding(seen, gpus[0], usual),)

    def missed(self, at: float, now: float) -> Sequence[Verdict]:
        """What ends because its engine has not been seen for long; ``at`` is the absolute time of ``now``."""
        if not self.signals.streaks:
            return ()
        gone = [name for name, pace in self.paces.items() if now - pace.seen > GONE_S]
        return [verdict for name in gone for verdict in self._leave(name, at)]

    def _leave(self, replica: str, at: float) -> Sequence[Verdict]:
        pace = self.paces.pop(replica, None)
        if pace is None or any(other.gpu == pace.gpu for other in self.paces.values()):
            return ()
        told = self.signals.stands(pace.gpu)
        self.signals.forget(pace.gpu)
        return (Clear(code=CODE, at=at, gpu=pace.gpu),) if told else ()

    def _peers(self, seen: ReplicaSeen, now: float) -> list[float]:
        return [
            pace.over_floor
            for name, pace in self.paces.items()
            if name != seen.replica and pace.deployment == seen.deployment and now - pace.at <= FRESH_S
        ]


def _finding(seen: ReplicaSeen, gpu: str, usual: float | None) -> Verdict:
    if usual is not None:
        text = f"its steps take {seen.over_floor:.1f} times their floor where those of its peers take {usual:.1f} times"
    else:
        text = f"its steps take {seen.over_usual:.1f} times as long as they used to"
    fields = {"engine": seen.replica, "over_floor": seen.over_floor, "over_usual": seen.over_usual, "peers": usual}
    return node_finding(CODE, seen.at, text, source=Source.ENGINE, gpu=gpu, fields=fields)
