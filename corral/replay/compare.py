"""Two policies over the same recordings: what one of them decides and the other does not."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from controller.core.decided import Count, Tally, compared
from controller.core.fleet.settings import Settings
from corral.replay.pauses import find
from corral.replay.play import Play
from corral.replay.recording import Recording
from vocab.lines import ActionLine, AnyLine, HoldLine


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """``decided`` by rule; ``gone``: lines of the first policy alone; ``new``: of the second alone."""

    decided: tuple[Count, ...]
    gone: tuple[AnyLine, ...]
    new: tuple[AnyLine, ...]

    @property
    def differs(self) -> bool:
        """Whether the two decide anything differently."""
        return bool(self.gone or self.new)


def compare(paths: Sequence[Path], before: Settings, after: Settings) -> Comparison:
    """Play the recordings under both policies. Raises InputError naming file and line."""
    one, other = _play(paths, before), _play(paths, after)
    return Comparison(
        decided=compared(Tally(one), Tally(other)), gone=tuple(_without(one, other)), new=tuple(_without(other, one))
    )


def _play(paths: Sequence[Path], settings: Settings) -> list[AnyLine]:
    play = Play(settings, find(paths))
    for observation in Recording(paths):
        play.see(observation)
    play.end()
    return play.lines


def _without(lines: list[AnyLine], others: list[AnyLine]) -> list[AnyLine]:
    """The holds and actions that are not among the others; when they come does not matter."""
    known = Counter(key for line in others if (key := _key(line)) is not None)
    rest = []
    for line in lines:
        key = _key(line)
        if key is not None and known[key] > 0:
            known[key] -= 1
        elif key is not None:
            rest.append(line)
    return rest


def _key(line: AnyLine) -> tuple[object, ...] | None:
    if isinstance(line, HoldLine):
        return (line.subject, line.op, line.owner, line.rule)
    return (line.subject, line.of, line.state, line.rule) if isinstance(line, ActionLine) else None
