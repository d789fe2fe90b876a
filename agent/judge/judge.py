"""The judge of one node. Pure: observations and time in, items for the controller out.

    observation -> probes -> findings -> (identity, fold, cause) -> events
                          -> clears   -> open conditions         -> cleared

``corral scan`` and ``corral replay`` run this same class. ``now`` orders and measures (it never goes
back); the ``at`` of observations is only written down. Everything it remembers is in ``snapshot``: a
judge that is restored from it and reads on from ``position`` ends with the same events and counts.
An observation whose time is unknown has the ``at`` NaN; its events then have no time.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from agent.judge.alone import OUTCOMES, WHY
from agent.judge.blame import WITHIN_S
from agent.judge.fold import is_repeat
from agent.judge.form import agrees, as_it_stands, boot_of, fold_key, form, is_partial, noted, quiet
from agent.judge.links import BY_EFFECT, effects_of, place_of, reaches_peers
from agent.judge.mind import Mind
from agent.probes.kernel import KernelProbe
from agent.probes.numbers import storable
from agent.probes.probe import Clear, Finding, Probe, TimedProbe, Verdict
from agent.probes.replica import ReplicaProbe
from agent.probes.sane import clean
from agent.probes.scene import Scene
from agent.probes.storm import Held
from vocab.errors import InputError
from vocab.events import Event, Flag, rfc3339
from vocab.messages import ClearedItem, EventItem
from vocab.observations import AnyObservation, GpuSample, KernelRecord, NodeSeen, Operator

Judged = EventItem | ClearedItem
SET_HEALTHY = "set_healthy"  # the one order of a person that a judge hears


class Judge:
    """Composes the probes and keeps folds, causes and open conditions for one node."""

    def __init__(self, node: str, boot_id: str | None = None, mind: Mind | None = None) -> None:
        self._mind = mind or Mind(scene=Scene(node=node, boot_id=boot_id))
        self._wire()

    def _wire(self) -> None:
        mind = self._mind
        self._kernel = KernelProbe(mind.tape, mind.log)
        self._probes: tuple[Probe, ...] = (self._kernel, mind.pushed, mind.gauges, mind.replica, mind.source)
        self._of_samples: tuple[Probe, ...] = (mind.gauges, mind.replica)  # most observations are samples
        self._timed: tuple[TimedProbe, ...] = (self._kernel, mind.pushed, mind.gauges, mind.source, mind.replica)
        self._deadline: float | None = None
        self._is_planned = False  # whether the deadline is known

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

    def enter(self, boot_id: str, now: float) -> list[Judged]:
        """The log that is read goes on with this boot: what came before is of another."""
        if boot_id == self.scene.boot_id:
            return []
        items = self._catch_up(now)
        if self.scene.boot_id is not None:
            items += self._take(self._kernel.flush(self.scene, now), now)
            self._kernel.rewind()
            self._mind.pushed.rewind()
        self.scene.boot_id = boot_id
        return items

    def believed(self, sample: GpuSample) -> GpuSample:
        """The sample as it may be shown: without the readings that it has found to be broken."""
        return self._mind.gauges.profiling.believed(sample, self.scene.sampled(sample))

    def open_counts(self) -> dict[str, int]:
        """The count of every event that may still grow, by id."""
        return {fold.event.id: fold.event.count for fold in self._mind.folds.open.values()}

    def observe(self, observation: AnyObservation, now: float, *, cleaned: bool = False) -> list[Judged]:
        """Take one observation in; what it changes, in causal order. ``cleaned``: a sample that ``clean`` has seen."""
        if isinstance(observation, KernelRecord) and self._repeats(observation, now):
            return []
        items = self._catch_up(now)
        bounded = storable(clean(observation) if isinstance(observation, GpuSample) and not cleaned else observation)
        if bounded is None:
            return items
        observation = bounded
        if isinstance(observation, GpuSample):
            for probe in self._of_samples:
                if found := probe.observe(observation, self.scene, now):
                    items += self._take(found, now)
            return items
        if isinstance(observation, Operator):
            self._look_anew(observation, now)
            return items
        if isinstance(observation, NodeSeen):
            if observation.boot_id != self.scene.boot_id:  # what still waits for a next line is of the boot before
                items += self._take(self._kernel.flush(self.scene, now), now)
            items += self._see(observation)
        for probe in self._probes:
            items += self._take(probe.observe(observation, self.scene, now), now)
        if isinstance(observation, KernelRecord) and (state := self._kernel.turned(observation)):
            items += self._take(self._mind.source.observe(state, self.scene, now), now)
        if self._mind.alone.see(observation, now):
            self._excuse()
        return items

    def _repeats(self, record: KernelRecord, now: float) -> bool:
        """Whether it is a line that only needed to be counted."""
        due = self._kernel.storm.due
        counted = self._kernel.repeats(record, self.scene, now)
        self._is_planned = self._is_planned and self._kernel.storm.due == due
        return counted

    def _catch_up(self, now: float) -> list[Judged]:
        """Before anything else is looked at: judge the lines that were only counted. What follows may change plans."""
        self._is_planned = False
        items: list[Judged] = []
        if self._kernel.storm.due is not None:
            for held in self._kernel.storm.release():
                items += self._take(self._kernel.catch_up(held, self.scene), now)
                self._mind.gauges.observe(held.record, self.scene, held.seen)
                self._mind.source.observe(held.record, self.scene, held.seen)
                items += self._more(held, now)
        return items

    def tick(self, now: float) -> list[Judged]:
        """Let time pass: what has become due."""
        due = self.next_deadline()
        if due is None or due > now:
            if self._kernel.storm.due is None:  # what is only counted so far keeps its fold open
                self._mind.folds.drop_over(now)
            return []
        items = self._catch_up(now)
        for probe in self._timed:
            items += self._take(probe.tick(self.scene, now), now)
        items += self._stand_alone(self._mind.alone.ripe(now), now)
        return items + [EventItem(event) for event in self._mind.folds.tick(now)]

    def close(self, now: float) -> list[Judged]:
        """The end of the input: what still waits for a next record, and the last counts."""
        items = self._catch_up(now)
        items += self._take(self._kernel.flush(self.scene, now), now)
        items += self._take(self._mind.pushed.flush(now), now)
        items += self._stand_alone(self._mind.alone.ripe(math.inf), now)
        return items + [EventItem(event) for event in self._mind.folds.close(now)]

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do, or None."""
        if not self._is_planned:
            times = [probe.next_deadline() for probe in self._timed]
            times += [self._mind.folds.next_deadline(), self._mind.alone.next_deadline()]
            self._deadline = min((time for time in times if time is not None), default=None)
            self._is_planned = True
        return self._deadline

    def _see(self, seen: NodeSeen) -> list[Judged]:
        """An inventory: another boot or a reset ends what it ends, before anything is judged anew."""
        mind, scene = self._mind, self._mind.scene
        self._kernel.storm.news()
        if scene.see(seen):
            ended = mind.board.reboot(seen.at, scene.node, scene.boot_id, scene.gpus)
            self._kernel.rewind()
            mind.pushed.rewind()
            for gpu in {*scene.gpus, *mind.gauges.known()}:
                mind.gauges.forget(gpu)
            scene.absent.clear()
            mind.replica.rebooted()
            return [ClearedItem(cleared) for cleared in ended]
        back = mind.board.reboot(seen.at, scene.node, scene.boot_id, scene.gpus)
        items: list[Judged] = [ClearedItem(cleared) for cleared in back]
        for gpu in seen.reset:
            mind.gauges.forget(gpu)
            scene.absent.discard(gpu)
            items += [ClearedItem(c) for c in mind.board.reset(gpu, seen.at, scene.node, scene.boot_id)]
        return items

    def _look_anew(self, order: Operator, now: float) -> None:
        """A person calls a GPU healthy: the next look at it says what is still wrong."""
        if order.do != SET_HEALTHY or order.gpu is None:
            return
        self._mind.gauges.doubt(order.gpu, now + self.scene.period_s)
        self._mind.board.drop(order.gpu)
        self.scene.absent.discard(order.gpu)

    def _take(self, verdicts: Sequence[Verdict], now: float) -> list[Judged]:
        items: list[Judged] = []
        for verdict in verdicts:
            items += self._clear(verdict) if isinstance(verdict, Clear) else self._find(verdict, now)
        return items

    def _clear(self, clear: Clear) -> list[Judged]:
        scene = self.scene
        cleared = self._mind.board.clear(clear, scene.node, scene.boot_id)
        if cleared:
            self._kernel.storm.news()
        return [ClearedItem(each) for each in cleared]

    def _find(self, finding: Finding, now: float) -> list[Judged]:
        found = finding
        if finding.at is not None and math.isnan(finding.at):
            finding = msgspec.structs.replace(finding, at=None)
        mind, scene, seen = self._mind, self.scene, now - finding.age_s
        finding = mind.pushed.heard(finding, now)
        key, flags = self._key(finding, seen)
        if flags:
            finding = msgspec.structs.replace(finding, flags=(*finding.flags, *flags))
        growing = mind.folds.growing(key, boot_of(finding, scene), seen)
        event = self._explained(form(finding, scene, growing), seen)
        if finding.joins and mind.folds.latest(key, seen) is None:  # the event that it is about is over
            event = msgspec.structs.replace(event, cause=mind.memory.told(event))
        at_once = mind.board.opens(event) or finding.joins
        before = mind.folds.open[key].event if growing else None
        last = mind.folds.replaced(key, event, now, seen)
        sent = mind.folds.add(key, event, now, at_once=at_once, seen=seen)
        current = mind.folds.open[key].event
        if before is None or at_once or not is_repeat(before, current):
            self._kernel.storm.news()
        self._kernel.storm.judged(found, None if event.cause else key)  # for how long a cause explains, only time tells
        self._follow(key, current, now, seen)
        return [EventItem(item) for item in (last, sent) if item is not None]

    def _more(self, held: Held, now: float) -> list[Judged]:
        """Lines that were only counted: as they were judged before. Their event grows, and what hangs on its time."""
        mind, seen, stamp = self._mind, held.seen, held.record.at
        if not mind.folds.growing(held.fold, self.scene.boot_id, seen):
            return self._find(msgspec.structs.replace(held.finding, at=stamp, count=held.count, age_s=now - seen), now)
        mind.pushed.heard(held.finding, now)
        sent = mind.folds.more(held.fold, held.count, None if math.isnan(stamp) else rfc3339(stamp), now, seen)
        self._follow(held.fold, mind.folds.open[held.fold].event, now, seen)
        return [EventItem(sent)] if sent else []

    def _follow(self, key: str, current: Event, now: float, seen: float) -> None:
        """What an event that has grown means for others."""
        mind = self._mind
        if current.code in OUTCOMES and current.cause is None and not current.injected:
            self._excuse(mind.alone.take(key, current, now, seen))
        mind.memory.remember(current, seen)
        self._relink(current)
        if mind.blame.note(current, seen):
            mind.folds.change([key for key, _ in mind.folds.of_codes(WITHIN_S)], mind.blame.explain)

    def _key(self, finding: Finding, now: float) -> tuple[str, tuple[Flag, ...]]:
        """Where the finding folds. A line of a burst that says less goes with the line before it; so does a storm."""
        key, folds = fold_key(finding, self.scene), self._mind.folds
        if finding.joins and (known := folds.latest(key, now)):
            return known, ()
        if key in folds.open:
            return key, ()
        if is_partial(finding):
            whole = next((known for known in folds.recent(key, now) if agrees(key, known)), None)
            if whole is not None:
                return whole, ()
        crowd = folds.crowded(key)
        return (key, ()) if crowd is None else (crowd, (Flag.STORM,))

    def _explained(self, event: Event, seen: float) -> Event:
        cause, is_quiet = self._mind.memory.explains(event, seen)
        if cause is None:
            for link in BY_EFFECT.get(event.code, ()):
                if link.standing and link.causes and not event.injected:
                    cause = cause or self._mind.board.cause(event.gpu, link.causes)
        is_quiet = is_quiet or (event.code in OUTCOMES and not event.injected)  # until it is known to stand alone
        event = quiet(event) if is_quiet else event
        event = msgspec.structs.replace(event, cause=cause) if cause else event
        return self._mind.blame.explain(event, seen)

    def _relink(self, cause: Event) -> None:
        """Events of the last seconds that were judged before this one, which explains them."""
        effects = effects_of(cause.code)
        if not effects or cause.injected:
            return
        folds, everywhere, place = self._mind.folds, reaches_peers(cause.code), place_of(cause)
        waiting = [
            key
            for key, event in folds.of_codes(effects)
            if event.cause is None and (everywhere or place_of(event) == place)
        ]
        folds.change(waiting, self._if_explained)

    def _if_explained(self, event: Event, seen: float) -> Event:
        """The event with the cause that is known by now; one that has none stands as it was judged."""
        explained = self._explained(event, seen)
        return explained if explained.cause is not None else event

    def _excuse(self, keys: Iterable[str] | None = None) -> None:
        """Outcomes that do not stand alone: those of these keys, or those whose process is seen to have ended."""
        folds, alone = self._mind.folds, self._mind.alone
        known = list(folds.of_codes(OUTCOMES)) if keys is None else [(k, folds.open[k].event) for k in keys]
        if keys is None:
            known = [(key, event) for key, event in known if alone.ended(event, folds.open[key].seen)]
        mine = [key for key, event in known if event.cause is None and not event.injected]
        for key in mine:
            alone.due.pop(key, None)
        folds.change(mine, lambda event, _: quiet(noted(event, WHY)))

    def _stand_alone(self, keys: Iterable[str], now: float) -> list[Judged]:
        """Outcomes that nothing has explained."""
        folds = self._mind.folds
        found = [(key, folds.open[key].event) for key in keys if key in folds.open]
        return [
            EventItem(folds.escalate(key, as_it_stands(event), now))
            for key, event in found
            if event.cause is None and "caused_by_xid" not in event.fields
        ]
