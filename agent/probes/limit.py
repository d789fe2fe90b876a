"""A power limit under that of its peers, or under its own of before: nobody lowers one GPU of a board on purpose.

There is no reading of the default limit, so two measures stand in for it: at least two other GPUs of the same kind, or,
where a GPU is alone, its own highest limit since it was reset. If all were lowered together somebody meant it.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.figures import finding, read
from agent.probes.peers import Peers
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.observations import AnyObservation

CODE = "power_limit_low"
LEAST_SHARE = 0.95  # of the measure; rounding of limits is far smaller
PEERS_NEEDED = 2
SUSTAINED = Patience()
SHOWN = ("power_limit_w", "power_w", "clock_reasons", "sm_clock_hz")


class LimitProbe(msgspec.Struct):
    """Compares the limit of each GPU."""

    peers: Peers = msgspec.field(default_factory=Peers)
    highest: dict[str, float] = {}
    signals: Signals = msgspec.field(default_factory=Signals)

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        limit = seen.readings.power_limit_w if seen else None
        if seen is None or limit is None:
            return ()
        self.peers.take(seen.gpu, seen.readings, now)
        self.highest[seen.gpu] = max(limit, self.highest.get(seen.gpu, 0.0))
        most = max(self.highest.values())
        measure = most if limit >= LEAST_SHARE * most else self._measure(seen.gpu, scene, now)
        if measure is None:
            return ()
        turn = self.signals.take(seen.gpu, SUSTAINED, now, bad=limit < LEAST_SHARE * measure)
        if turn is Turn.ENDED:
            return (Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu),)
        if turn is None:
            return ()
        text = f"the power limit is {limit:g} W where {measure:g} W is usual here"
        fields = {"power_limit_w": limit, "usual_w": measure}
        return (finding(seen.sample, seen.gpu, CODE, text, names=SHOWN, fields=fields),)

    def _measure(self, gpu: str, scene: Scene, now: float) -> float | None:
        usual, count = self.peers.median_of(gpu, scene, now, lambda readings: readings.power_limit_w)
        if count >= PEERS_NEEDED:
            return usual
        before = self.highest.get(gpu)
        if count == 0:
            return before
        return None if usual is None or before is None else min(before, usual)  # of two, both must say so

    def forget(self, gpu: str) -> None:
        """A reset puts limits back to their defaults."""
        self.signals.forget(gpu)
        self.highest.pop(gpu, None)
        self.peers.forget(gpu)
