"""The judge of one node. Pure: observations and time in, items for the controller out.

    observation -> probes -> findings -> (identity, fold, cause) -> events
                          -> clears   -> open conditions         -> cleared

``corral scan`` and ``corral replay`` run this same class. ``now`` orders and measures (it never goes
back); the ``at`` of observations is only written down. Everything it remembers is in ``snapshot``: a
judge that is restored from it and reads on from ``position`` ends with the same events and counts.
An observation whose time is unknown has the ``at`` NaN; its events then have no time.
"""

import math
from collections.abc import Sequence

import msgspec

from agent.judge.blame import WITHIN_S, Blame
from agent.judge.folds import Folds
from agent.judge.form import agrees, fold_key, form, is_partial, quiet
from agent.judge.links import BY_EFFECT, Memory, effects_of, reaches_peers
from agent.judge.standing import Board
from agent.probes.activity import ActivityProbe
from agent.probes.ecc import EccProbe
from agent.probes.kernel import KernelProbe
from agent.probes.power import PowerProbe
from agent.probes.presence import PresenceProbe
from agent.probes.probe import Clear, Finding, GpuProbe, Probe, TimedProbe, Verdict
from agent.probes.remap import RemapProbe
from agent.probes.replica import ReplicaProbe
from agent.probes.scene import Scene
from agent.probes.source import SourceProbe
from agent.probes.tape import Tape
from agent.probes.thermal import ThermalProbe
from vocab.errors import InputError
from vocab.events import Event, Flag
from vocab.messages import ClearedItem, EventItem
from vocab.observations import AnyObservation, NodeSeen

Judged = EventItem | ClearedItem


class Mind(msgspec.Struct):
    """All that a judge remembers."""

    scene: Scene
    tape: Tape = msgspec.field(default_factory=Tape)
    folds: Folds = msgspec.field(default_factory=Folds)
    board: Board = msgspec.field(default_factory=Board)
    memory: Memory = msgspec.field(default_factory=Memory)
    blame: Blame = msgspec.field(default_factory=Blame)
    presence: PresenceProbe = msgspec.field(default_factory=PresenceProbe)
    thermal: ThermalProbe = msgspec.field(default_factory=ThermalProbe)
    power: PowerProbe = msgspec.field(default_factory=PowerProbe)
    ecc: EccProbe = msgspec.field(default_factory=EccProbe)
    remap: RemapProbe = msgspec.field(default_factory=RemapProbe)
    activity: ActivityProbe = msgspec.field(default_factory=ActivityProbe)
    replica: ReplicaProbe = msgspec.field(default_factory=ReplicaProbe)
    source: SourceProbe = msgspec.field(default_factory=SourceProbe)


class Judge:
    """Composes the probes and keeps folds, causes and open conditions for one node."""

    def __init__(self, node: str, boot_id: str | None = None, mind: Mind | None = None) -> None:
        self._mind = mind or Mind(scene=Scene(node=node, boot_id=boot_id))
        self._wire()

    def _wire(self) -> None:
        mind = self._mind
        self._kernel = KernelProbe(mind.tape)
        self._gpu: tuple[GpuProbe, ...] = (
            mind.presence, mind.thermal, mind.power, mind.ecc, mind.remap, mind.activity,
        )  # fmt: skip
        self._probes: tuple[Probe, ...] = (self._kernel, *self._gpu, mind.replica, mind.source)
        self._timed: tuple[TimedProbe, ...] = (self._kernel, mind.presence, mind.power, mind.source, mind.replica)

    @classmethod
    def restore(cls, raw: bytes) -> "Judge":
        """The judge that made this snapshot. Raises InputError if it is not one of this version."""
        try:
            mind = msgspec.msgpack.decode(raw, type=Mind)
        except msgspec.DecodeError as error:
            raise InputError(f"the judge's snapshot cannot be read: {error}") from error
        return cls(mind.scene.node, mind=mind)

    def snapshot(self) -> bytes:
        """All that this judge remembers."""
        return msgspec.msgpack.encode(self._mind)

    @property
    def scene(self) -> Scene:
        """The node as last seen; not to be changed."""
        return self._mind.scene

    @property
    def replicas(self) -> ReplicaProbe:
        """What is known of the node's replicas; not to be changed."""
        return self._mind.replica

    @property
    def position(self) -> int | None:
        """The last kernel record that is judged to its end; reading may go on after it."""
        return self._mind.tape.judged

    def open_counts(self) -> dict[str, int]:
        """The count of every event that may still grow, by id."""
        return {fold.event.id: fold.event.count for fold in self._mind.folds.open.values()}

    def observe(self, observation: AnyObservation, now: float) -> list[Judged]:
        """Take one observation in; what it changes, in causal order."""
        items: list[Judged] = []
        if isinstance(observation, NodeSeen):
            items += self._see(observation)
        for probe in self._probes:
            items += self._take(probe.observe(observation, self.scene, now), now)
        return items

    def tick(self, now: float) -> list[Judged]:
        """Let time pass: what has become due."""
        items: list[Judged] = []
        for probe in self._timed:
            items += self._take(probe.tick(self.scene, now), now)
        return items + [EventItem(event) for event in self._mind.folds.tick(now)]

    def close(self, now: float) -> list[Judged]:
        """The end of the input: what still waits for a next record, and the last counts."""
        items = self._take(self._kernel.flush(self.scene, now), now)
        return items + [EventItem(event) for event in self._mind.folds.close(now)]

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do, or None."""
        times = [probe.next_deadline() for probe in self._timed]
        times.append(self._mind.folds.next_deadline())
        return min((time for time in times if time is not None), default=None)

    def _see(self, seen: NodeSeen) -> list[Judged]:
        """An inventory: another boot or a reset ends what it ends, before anything is judged anew."""
        mind, scene = self._mind, self._mind.scene
        if scene.see(seen):
            ended = mind.board.reboot(seen.at, scene.node, scene.boot_id)
            self._kernel.rewind()
            for gpu in [*scene.gpus, *mind.presence.known]:
                self._forget(gpu)
            scene.absent.clear()
            mind.replica.rebooted()
            return [ClearedItem(cleared) for cleared in ended]
        items: list[Judged] = []
        for gpu in seen.reset:
            self._forget(gpu)
            items += [ClearedItem(c) for c in mind.board.reset(gpu, seen.at, scene.node, scene.boot_id)]
        return items

    def _forget(self, gpu: str) -> None:
        for probe in self._gpu:
            probe.forget(gpu)

    def _take(self, verdicts: Sequence[Verdict], now: float) -> list[Judged]:
        items: list[Judged] = []
        for verdict in verdicts:
            items += self._clear(verdict) if isinstance(verdict, Clear) else self._find(verdict, now)
        return items

    def _clear(self, clear: Clear) -> list[Judged]:
        scene = self.scene
        return [ClearedItem(cleared) for cleared in self._mind.board.clear(clear, scene.node, scene.boot_id)]

    def _find(self, finding: Finding, now: float) -> list[Judged]:
        if finding.at is not None and math.isnan(finding.at):
            finding = msgspec.structs.replace(finding, at=None)
        mind, scene = self._mind, self.scene
        key, flags = self._key(finding, now)
        if flags:
            finding = msgspec.structs.replace(finding, flags=(*finding.flags, *flags))
        event = self._explained(form(finding, scene), now)
        last = mind.folds.replaced(key, event, now)
        sent = mind.folds.add(key, event, now, at_once=mind.board.opens(event) or finding.joins)
        current = mind.folds.open[key].event
        mind.memory.remember(current, now)
        self._relink(current, now)
        if mind.blame.note(current, now):
            keys = [key for key, _ in mind.folds.of_codes(WITHIN_S)]
            mind.folds.change(keys, lambda effect: mind.blame.explain(effect, now))
        return [EventItem(item) for item in (last, sent) if item is not None]

    def _key(self, finding: Finding, now: float) -> tuple[str, tuple[Flag, ...]]:
        """Where the finding folds. A line of a burst that says less goes with the line before it; so does a storm."""
        key, folds = fold_key(finding, self.scene), self._mind.folds
        if key in folds.open:
            return key, ()
        if is_partial(finding):
            whole = next((known for known in folds.recent(key, now) if agrees(key, known)), None)
            if whole is not None:
                return whole, ()
        crowd = folds.crowded(key)
        return (key, ()) if crowd is None else (crowd, (Flag.STORM,))

    def _explained(self, event: Event, now: float) -> Event:
        cause, is_quiet = self._mind.memory.explains(event, now)
        if cause is None:
            for link in BY_EFFECT.get(event.code, ()):
                if link.standing and link.causes and not event.injected:
                    cause = cause or self._mind.board.cause(event.gpu, link.causes)
        event = quiet(event) if is_quiet else event
        event = msgspec.structs.replace(event, cause=cause) if cause else event
        return self._mind.blame.explain(event, now)

    def _relink(self, cause: Event, now: float) -> None:
        """Events of the last seconds that were judged before this one, which explains them."""
        effects = effects_of(cause.code)
        if not effects or cause.injected:
            return
        folds, everywhere = self._mind.folds, reaches_peers(cause.code)
        waiting = [
            key
            for key, event in folds.of_codes(effects)
            if event.cause is None and (everywhere or event.gpu == cause.gpu)
        ]
        folds.change(waiting, lambda event: self._explained(event, now))
