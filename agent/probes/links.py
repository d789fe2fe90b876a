"""NVLinks that should be up and are down.

*Not supported* is not *down*: a card without a bridge has no links, and one with a two-way bridge has four. What is
down before the fabric has registered, while the node starts, or under MIG says nothing. All links of a card that is
not on a switch board may be unconnected for ever; they count only once they were seen up.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.figures import Read, finding, read
from agent.probes.probe import Clear, Verdict
from agent.probes.scene import Scene
from vocab.events import Recovery
from vocab.observations import AnyObservation

CODE = "nvlink_down"
COMPLETED = 3
BRIDGED = ("PCIE", " NVL", "L40", "RTX")  # boards whose links go to a bridge that need not be there
SHOWN = ("fabric_state", "fabric_status", "mig_mode")


class Links(msgspec.Struct):
    """The links of one GPU: which were ever up, which are said to be down, and how often each was said."""

    seen_up: set[str] = set()
    down: set[str] = set()
    turns: dict[str, int] = {}


class LinksProbe(msgspec.Struct):
    """Follows the state of every link of each GPU."""

    gpus: dict[str, Links] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one sample of one GPU."""
        seen = read(observation, scene)
        if seen is None or not seen.sample.links:
            return ()
        states = {n: link.state for n, link in seen.sample.links.items() if link.state is not None}
        if not states or _says_nothing(seen, scene, now):
            return ()
        links = self.gpus.setdefault(seen.gpu, Links())
        links.seen_up |= {n for n, state in states.items() if state == 1}
        return list(self._judge(seen, scene, links, states))

    def _judge(self, seen: Read, scene: Scene, links: Links, states: dict[str, int]) -> Iterator[Verdict]:
        dead = {n for n, state in states.items() if state == 0 and self._is_wanted(n, seen, scene, links)}
        whole = len(dead) == len(states)
        for n in sorted(dead - links.down, key=_number):
            links.down.add(n)
            links.turns[n] = links.turns.get(n, 0) + 1
            yield finding(
                seen.sample,
                seen.gpu,
                CODE,
                f"NVLink {n} is down; {len(states) - len(dead)} of {len(states)} links are up",
                names=SHOWN,
                device=f"link:{n}",
                first=(links.turns[n], CODE, n),
                recovery=Recovery.INVESTIGATE if whole else None,  # all at once: the fabric, not the links
                fields={"link": _number(n), "links": len(states), "down": sorted(map(_number, dead))},
            )
        for n in sorted(links.down & {n for n, state in states.items() if state == 1}, key=_number):
            links.down.discard(n)
            yield Clear(code=CODE, at=seen.sample.at, gpu=seen.gpu, device=f"link:{n}")

    @staticmethod
    def _is_wanted(n: str, seen: Read, scene: Scene, links: Links) -> bool:
        known = scene.gpus.get(seen.gpu)
        board = (known.name or "").upper() if known else ""
        return n in links.seen_up or not any(word in board for word in BRIDGED)

    def forget(self, gpu: str) -> None:
        """A reset GPU trains its links anew; ``turns`` stays, for it tells its events apart."""
        if gpu in self.gpus:
            self.gpus[gpu].down.clear()


def _says_nothing(seen: Read, scene: Scene, now: float) -> bool:
    known = scene.gpus.get(seen.gpu)
    if seen.readings.mig_mode or (known is not None and known.mig):
        return True  # NVML shows the links of a partitioned GPU as down
    state = seen.readings.fabric_state
    return scene.starting(now) and state != COMPLETED


def _number(n: str) -> int:
    return int(n) if n.isdigit() else -1
