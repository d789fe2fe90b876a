"""Samples that are missing of one GPU while its peers are complete.

Expected are as many as the promised period says. Below four fifths for two hours opens it, one hour at 95 % ends it.
If the peers lack samples as well it is not this GPU. Counted in slots of ten minutes; a half hour at a time is looked
at, so that a short gap is one and chance is none.
"""

from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from agent.probes.figures import node_finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.events import Source
from vocab.observations import AnyObservation, NodeSeen

CODE = "probe_incomplete"
LOW, FULL = 0.8, 0.95
SLOT_S = 600.0
LOOK, OPEN, CLOSE = 3, 12, 6  # slots: half an hour is looked at, two hours open it, one hour ends it


class Counted(msgspec.Struct):
    """Samples of one GPU: in the current slot, and in the last ones, newest last."""

    now: int = 0
    slots: list[int] = []
    said: bool = False
    turn: int = 0


class IncompleteProbe(msgspec.Struct):
    """Counts the samples of every GPU of the inventory, if a period was promised."""

    period_s: float | None = None
    gpus: dict[str, Counted] = {}
    began: float | None = None  # the current slot

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Count a sample; an inventory says whose are expected."""
        if isinstance(observation, NodeSeen):
            if observation.period_s is not None and observation.period_s != self.period_s:
                self.period_s, self.gpus, self.began = observation.period_s, {}, now
            self.gpus = {gpu.uuid: self.gpus.get(gpu.uuid, Counted()) for gpu in observation.gpus}
            return ()
        if self.period_s is None:
            return ()
        seen = read(observation, scene)
        if seen is not None and seen.gpu in self.gpus and seen.sample.error is None:
            self.gpus[seen.gpu].now += 1
        return ()

    @property
    def slot_s(self) -> float:
        """The length of a slot: some samples must fit."""
        return max(SLOT_S, 10.0 * (self.period_s or 0.0))

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Close the slots that are over, and judge."""
        verdicts: list[Verdict] = []
        while self.began is not None and self.period_s and now >= self.began + self.slot_s:
            self.began += self.slot_s
            for counted in self.gpus.values():
                counted.slots, counted.now = [*counted.slots, counted.now][-(OPEN + LOOK) :], 0
            verdicts += self._judge(scene, self.began)
        return verdicts

    def _judge(self, scene: Scene, now: float) -> Iterator[Verdict]:
        for gpu, counted in self.gpus.items():
            if gpu in scene.absent:
                continue
            if not counted.said:
                if self._lacks(counted) and self._peers_are_full(gpu):
                    counted.said, counted.turn = True, counted.turn + 1
                    yield self._say(gpu, counted, now)
            elif len(counted.slots) >= CLOSE and self._share(counted.slots[-CLOSE:]) >= FULL:
                counted.said = False
                yield Clear(code=CODE, at=now, gpu=gpu)

    def _lacks(self, counted: Counted) -> bool:
        """Whether every half hour of the last two hours lacked samples."""
        last = counted.slots[-OPEN:]
        looks = [last[end - LOOK : end] for end in range(LOOK, OPEN + 1)]
        return len(last) == OPEN and all(self._share(look) < LOW for look in looks)

    def _peers_are_full(self, gpu: str) -> bool:
        shares = [self._share(other.slots[-OPEN:]) for uuid, other in self.gpus.items() if uuid != gpu and other.slots]
        return bool(shares) and median(shares) >= FULL

    def _share(self, slots: Sequence[int]) -> float:
        """The samples of these slots against those expected."""
        return sum(slots) * (self.period_s or 0.0) / (self.slot_s * len(slots))

    def _say(self, gpu: str, counted: Counted, now: float) -> Verdict:
        share = self._share(counted.slots[-OPEN:])
        text = f"{share:.0%} of its samples came in two hours, while its peers are complete"
        fields = {"share": round(share, 3), "period_s": self.period_s}
        return node_finding(
            CODE, now, text, source=Source.CORRAL, gpu=gpu, first=(counted.turn,), fields=fields, readings=fields
        )

    def next_deadline(self) -> float | None:
        """When the current slot is over."""
        return None if self.began is None or not self.period_s or len(self.gpus) < 2 else self.began + self.slot_s

    def forget(self, gpu: str) -> None:
        """A reset takes a minute; the counting goes on."""
