"""NVLinks that run slower than the others: one that trained with fewer lanes or at a lower rate still carries traffic.

What a link should do is what the fastest link of a GPU of the same kind does, on this node, while both are up. If all
run alike, somebody or something meant it. Only a GPU at work is judged: an idle link may rest.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.pcie import works
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import Patience, Signals, Turn
from vocab.observations import AnyObservation

CODE = "nvlink_slow"
LEAST_SHARE = 0.75  # of the fastest; half the lanes or half the rate is 0.5, and rates of one generation are equal
SUSTAINED = Patience()
SHOWN = ("utilization_ratio", "performance_state", "nvlink_rx_bytes", "nvlink_tx_bytes")


class LinkSpeedProbe(msgspec.Struct):
    """Compares the speed of every link that is up with the fastest one of its kind."""

    fastest: dict[str, float] = {}  # GPU -> bytes a second of its fastest link, as last read
    signals: Signals = msgspec.field(default_factory=Signals)
    turns: dict[str, int] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None or not seen.sample.links:
            return ()
        links = seen.sample.links.items()
        speeds = {n: link.speed_bytes_per_s for n, link in links if link.state == 1 and link.speed_bytes_per_s}
        if not speeds:
            return ()
        self.fastest[seen.gpu] = max(speeds.values())
        return list(self._judge(seen, speeds, scene, now)) if works(seen.readings) else ()

    def _judge(self, seen: Read, speeds: dict[str, float], scene: Scene, now: float) -> Iterator[Verdict]:
        usual = max(speed for gpu, speed in self.fastest.items() if _alike(gpu, seen.gpu, scene))
        for n, speed in speeds.items():
            key = f"{seen.gpu}/{n}"
            turn = self.signals.take(key, SUSTAINED, now, bad=speed < LEAST_SHARE * usual)
            if turn is Turn.RAISED:
                self.turns[key] = self.turns.get(key, 0) + 1
                yield finding(
                    seen.sample,
                    seen.gpu,
                    CODE,
                    f"NVLink {n} runs at {speed / 1e9:g} GB/s each way where {usual / 1e9:g} GB/s is usual here",
                    names=SHOWN,
                    device=f"link:{n}",
                    first=(CODE, n, self.turns[key]),
                    fields={
                        "link": int(n) if n.isdigit() else None,
                        "speed_bytes_per_s": speed,
                        "usual_bytes_per_s": usual,
                    },
                )
            elif turn is Turn.ENDED:
                yield Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu, device=f"link:{n}")

    def forget(self, gpu: str) -> None:
        """A reset GPU trains its links anew; ``turns`` stays, for it tells its events apart."""
        self.signals.forget(gpu)
        self.fastest.pop(gpu, None)


def _alike(one: str, other: str, scene: Scene) -> bool:
    """Whether two GPUs of the inventory are of one kind; each is like itself."""
    if one == other:
        return True
    first, second = scene.gpus.get(one), scene.gpus.get(other)
    return first is not None and second is not None and first.name is not None and first.name == second.name
