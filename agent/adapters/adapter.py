"""What the agent must know of an engine to start it, to judge it and to let it go. One engine is one such row.

Facts only, no I/O: the same row serves a replica that this agent starts and one that it found running.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from agent.adapters.group import Group
from vocab.catalogue.cuda import error_in
from vocab.messages import ReplicaSpec


class Farewell(StrEnum):
    """How an engine is asked to end what is open and to exit."""

    DOOR = "door"  # POST /drain, and it can be told to admit again
    SIGTERM = "sigterm"  # there is no other word for it, and none that takes it back


class Meters(msgspec.Struct, frozen=True, kw_only=True):
    """Names of /metrics, as they stand in its lines (a histogram's ``_count`` too). Several are added up.

    Of ``steps`` and ``tokens`` only growth counts: they prove that the engine moves. The first of ``tokens`` counts
    those that come out, while they come; without it the others say nothing, for they stand still in a long answer.
    """

    steps: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    kv_ratio: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()  # requests, told apart by ``ended_by``
    ended_by: str = ""
    ok: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return frozenset((*self.steps, *self.tokens, *self.running, *self.waiting, *self.kv_ratio, *self.ended))


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """One replica to be started. ``port`` is on loopback; ``cpu``: the node's GPUs are made up.

    ``spec`` has the members of this node; ``group``: what it is among the processes of other nodes, if there are any.
    """

    spec: ReplicaSpec
    port: int
    beat: str
    cpu: bool
    program: tuple[str, ...]  # the engine of this installation; others are found by their own name
    group: Group | None = None


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One engine. ``marks``: beginnings of metric names by which a running one is known."""

    name: str
    argv: Callable[[Start], tuple[str, ...]]
    marks: tuple[str, ...] = ()
    meters: Meters = Meters()
    ready: str = "/health"  # answers 200 from when it takes requests on
    health: str = "/health"
    farewell: Farewell = Farewell.SIGTERM
    has_beat: bool = False  # it writes the beat file; without one /metrics is its beat
    named_by: tuple[str, ...] = ()  # programs that start it
    named_with: tuple[str, ...] = ()  # flags without which a program of that name is another
    model_flags: tuple[str, ...] = ()
    default_port: int | None = None
    exits: Mapping[int, str] = {}  # exit codes that say more than *crashed*
    telling: tuple[str, ...] = ()  # patterns of the log lines that say why it ended, most telling first

    def last_words(self, lines: Sequence[str]) -> str | None:
        """The line that says why it ended: one that names a CUDA error, then what it is known to say, else the last."""
        latest = [line.strip() for line in lines if line.strip()]
        for line in reversed(latest):
            if error_in(line) is not None:
                return line
        for pattern in self.telling:
            found = next((line for line in reversed(latest) if re.search(pattern, line)), None)
            if found is not None:
                return found
        return latest[-1] if latest else None


def flags(pairs: Sequence[tuple[str, object]], options: Mapping[str, object]) -> tuple[str, ...]:
    """``--name value`` words. ``options`` add to ``pairs`` in the engine's own names; true stands for a bare flag."""
    words: list[str] = []
    own = [(f"--{name.replace('_', '-')}", value) for name, value in sorted(options.items())]
    for name, value in (*pairs, *own):
        if value is False or value is None:
            continue
        words += [name] if value is True else [name, str(value)]
    return tuple(words)
