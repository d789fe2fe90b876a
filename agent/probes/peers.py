"""What the other GPUs of the node say at the moment: the measure for readings that have no limit of their own."""

from collections.abc import Callable
from statistics import median

import msgspec

from agent.probes.scene import Scene
from vocab.readings import Readings

FRESH_S = 120.0  # a slow reading comes every 10 s, a recording's may come every minute


class Peer(msgspec.Struct, frozen=True):
    """The latest readings of one GPU, and when they came."""

    readings: Readings
    at: float


class Peers(msgspec.Struct):
    """The latest readings of every GPU."""

    latest: dict[str, Peer] = {}

    def take(self, gpu: str, readings: Readings, now: float) -> None:
        """Note one sample."""
        self.latest[gpu] = Peer(readings, now)

    def median_of(
        self, gpu: str, scene: Scene, now: float, figure: Callable[[Readings], float | None]
    ) -> tuple[float | None, int]:
        """The median of a figure over the other GPUs of the same kind, and how many they are."""
        name = scene.gpus[gpu].name if gpu in scene.gpus else None
        found = []
        for other, peer in self.latest.items():
            if other == gpu or now - peer.at > FRESH_S or other in scene.absent:
                continue
            known = scene.gpus.get(other)
            value = figure(peer.readings) if known is not None and known.name == name else None
            if value is not None:
                found.append(value)
        return (median(found) if found else None), len(found)

    def forget(self, gpu: str) -> None:
        """What was read before a reset says nothing of what comes."""
        self.latest.pop(gpu, None)
