"""What a probe is: one fault class, seen in observations. Pure: no clock, file, socket or log inside.

A probe says what it found (a Finding) or that a signal is back to good (a Clear). It does not know
events, folds or causes; those are the judge's. ``now`` never goes back; ``at`` of an observation may.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from agent.probes.scene import Scene
from vocab.events import Evidence, Flag, Mig, Recovery, Scope, Severity, Source
from vocab.observations import AnyObservation


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something is wrong. None for severity, recovery and scope means: as the catalogue's row says.

    ``first`` is the evidence that names the event (see vocab.events.event_id); ``at`` is None where the
    input has no absolute time.
    """

    code: str
    at: float | None
    source: Source
    first: tuple[Any, ...]
    gpu: str | None = None
    pci: str | None = None
    mig: Mig | None = None
    device: str | None = None
    severity: Severity | None = None
    recovery: Recovery | None = None
    scope: Scope | None = None
    pid: int | None = None
    process: str | None = None
    injected: bool = False
    drill: bool = False  # a drill's, which is injected as well
    seq: int | None = None
    kernel_s: float | None = None
    flags: tuple[Flag, ...] = ()
    fields: dict[str, Any] = {}
    text: str = ""
    evidence: tuple[Evidence, ...] = ()
    count: int = 1  # 0: more evidence of a finding that was counted already
    age_s: float = 0.0  # how long ago it was, for what is read from a backlog
    history: bool = False  # it is of an earlier boot
    joins: bool = False  # another witness: it belongs to whatever event of this code is open on its subject


class Clear(msgspec.Struct, frozen=True, kw_only=True):
    """The signal behind ``code`` is good again. ``name`` tells replicas or sources of one code apart.

    ``proven``: what reported the fault has looked again and found it gone, whatever else would end it.
    """

    code: str
    at: float | None
    gpu: str | None = None
    device: str | None = None
    name: str | None = None
    proven: bool = False


Verdict = Finding | Clear


class Probe(Protocol):
    """One fault class. Its attributes are its whole memory and can be stored."""

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """What this observation shows; observations of other kinds are ignored."""
        ...


class TimedProbe(Probe, Protocol):
    """A probe to which the passing of time alone can mean something."""

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """What has become due by ``now``."""
        ...

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do, or None."""
        ...
