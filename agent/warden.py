"""What the agent does to the node's replicas: its own fences, and what the controller wants, within bounds.

The decisions are pure (fence.py, gate.py); this carries them out through the replica supervisor and says
what came of it. It remembers the Desired in force, the PAUSE file, and which orders it has answered.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from agent.export import Export
from agent.fence import Bounds, Fences, Step
from agent.gate import Sighted, admitted
from agent.latest import Latest
from vocab.clock import Clock
from vocab.messages import (
    ActionItem,
    ClearedItem,
    Desired,
    EventItem,
    FenceItem,
    Item,
    Order,
    ReplicaSpec,
    ReplicaStatus,
)
from vocab.observations import Check, ProcessSeen, ReplicaSeen
from vocab.states import ActionKind, ActionState, Level

log = logging.getLogger(__name__)

LEVELS = list(Level)
REFUSAL = "this agent performs no {of}: do it by hand, then release the GPU"


class Replicas(Protocol):
    """What the agent asks of the replica supervisor."""

    def converge(self, specs: Sequence[ReplicaSpec]) -> None:
        """What should run."""
        ...

    def fence(self, gpu: str) -> None:
        """Replicas on this GPU stop admitting."""
        ...

    def unfence(self, gpu: str) -> None:
        """They may admit again."""
        ...

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        """Every replica."""
        ...

    def observations(self, at: float) -> list[ReplicaSeen | ProcessSeen | Check]:
        """A look at every replica."""
        ...

    def restart(self, replica: str) -> bool:
        """End it and start it anew in place; False if no process of it lives."""
        ...


class Orders(Protocol):
    """Who carries out repairs and validations, and what concerns units of the site."""

    def takes(self, order: Order) -> bool:
        """Whether an order is for them."""
        ...

    def order(self, orders: Sequence[Order]) -> None:
        """All orders that stand for this node."""
        ...


class Warden:
    """Fences and converges. ``answered`` are the orders that were answered before."""

    def __init__(
        self,
        *,
        node: str,
        level: Level,
        pause_file: Path,
        clock: Clock,
        fences: Fences,
        answered: tuple[str, ...],
        replicas: Replicas,
        latest: Latest,
        export: Export,
        desired: Desired | None,
    ) -> None:
        self._node = node
        self._level = level
        self._pause_file = pause_file
        self._clock = clock
        self._replicas = replicas
        self._latest = latest
        self._export = export
        self._passed: tuple[ReplicaSpec, ...] | None = None
        self.fences = fences
        self.answered = answered
        self.desired = desired
        self.hands: Orders | None = None
        self._going = False
        self.paused_here = pause_file.exists()
        for gpu in sorted(fences.gpus):  # before anything converges: what was fenced stays fenced
            replicas.fence(gpu)
        self._publish()

    @property
    def level(self) -> Level:
        """The lower of the node's own level and the controller's."""
        if self.desired is None:
            return self._level
        return min(self._level, self.desired.level, key=LEVELS.index)

    @property
    def is_paused(self) -> bool:
        """Whether harmful acts are forbidden, by the PAUSE file or by the controller."""
        return self.paused_here or (self.desired is not None and self.desired.paused)

    @property
    def bounds(self) -> Bounds:
        """What limits a fence now."""
        gpus = len(self._latest.seen.gpus) if self._latest.seen else 0
        shadowed = frozenset(self.desired.shadowed if self.desired is not None else ())
        return Bounds(level=self.level, paused=self.is_paused, gpus=gpus, shadowed=shadowed)

    # -- fences -----------------------------------------------------------------------------------------

    def judge(self, items: Iterable[object], steps: Sequence[Step], now: float) -> list[Item]:
        """Fence for the events among these items; do these and the given steps, and say so."""
        found = list(steps)
        for item in items:
            if isinstance(item, EventItem):
                found += self.fences.judged(item.event, self.bounds, now)
            elif isinstance(item, ClearedItem):
                log.info("cleared", extra={"code": item.cleared.code, "gpu": item.cleared.gpu, "by": item.cleared.by})
        said = [item for step in found for item in self._perform(step)]
        if found:
            self._publish()
        return said

    def tick(self, now: float) -> list[Step]:
        """Fences that expire, and those that holds replace or release."""
        held = self.fences.held(self.desired.holds) if self.desired else []
        return [*held, *self.fences.tick(now)]

    def _perform(self, step: Step) -> list[Item]:
        if step.op == "placed":
            self._replicas.fence(step.gpu)
        elif step.op in {"expired", "released"}:
            self._replicas.unfence(step.gpu)
        self._export.count("corral_agent_fences_total", op=step.op)
        log.warning("fence %s: %s", step.op, step.why, extra={"gpu": step.gpu, "event_id": step.event})
        if step.op == "released":  # the hold's own end says it
            return []
        at = self._clock.now()
        return [FenceItem(at=at, node=self._node, gpu=step.gpu, op=step.op, event=step.event, why=step.why)]

    # -- the controller's will --------------------------------------------------------------------------

    def apply(self, desired: Desired) -> list[Item]:
        """Take a new Desired; the answers to its orders."""
        self.desired = desired
        self._publish()
        theirs = [order for order in desired.orders if self.hands is not None and self.hands.takes(order)]
        if self.hands is not None:
            self.hands.order(theirs)
        fresh = [order for order in desired.orders if order.id not in self.answered and order not in theirs]
        self.answered = (*self.answered, *(order.id for order in fresh))
        return [self._carry_out(order) for order in fresh]

    def _carry_out(self, order: Order) -> ActionItem:
        """A replica of ours is restarted in place; what ends well is seen by the replica itself."""
        if order.of is not ActionKind.RESTART_REPLICA or order.replica is None:
            return self._answer(order, ActionState.REFUSED, REFUSAL.format(of=order.of.value))
        if self.is_paused:
            return self._answer(order, ActionState.REFUSED, "automation is paused here: resume it first")
        if not self._replicas.restart(order.replica):
            return self._answer(order, ActionState.REFUSED, f"no process of {order.replica} lives on this node")
        return self._answer(order, ActionState.RUNNING, None)

    def _answer(self, order: Order, state: ActionState, error: str | None) -> ActionItem:
        return ActionItem(
            at=self._clock.now(),
            node=self._node,
            id=order.id,
            of=order.of,
            token=order.token,
            state=state,
            gpu=order.gpu,
            replica=order.replica,
            error=error,
        )

    def converge(self) -> None:
        """Tell the supervisor what may run now. Before a Desired is known it is told nothing and keeps what lives."""
        if self.desired is None or self._going:
            return
        statuses = self._replicas.statuses()
        living = frozenset(status.replica for status in statuses if status.pid is not None)
        ended = frozenset(status.replica for status in statuses if status.exit is not None)
        before = self._passed or ()
        sighted = Sighted(
            node=self._node,
            known=living | ended | {spec.replica for spec in before},
            living=living,
            proven=self._latest.proven,
            paused=self.paused_here,
        )
        passed = admitted(self.desired.replicas, before, self.desired.holds, sighted)
        if passed != self._passed:
            self._passed = passed
            self._replicas.converge(passed)

    def leave(self, *, going: bool) -> None:
        """The node is about to boot: what runs leaves and nothing starts; or it stays up after all."""
        self._going, self._passed = going, None
        if going:
            self._replicas.converge(())
        else:
            self.converge()

    def look_for_pause(self) -> bool:
        """Whether the PAUSE file came or went."""
        paused = self._pause_file.exists()
        if paused == self.paused_here:
            return False
        self.paused_here = paused
        log.warning("automation is %s by %s", "paused" if paused else "resumed", self._pause_file)
        return True

    def _publish(self) -> None:
        self._export.standing.fenced = self.fences.gpus
        held = Counter(hold.gpu for hold in self.desired.holds if hold.gpu) if self.desired else {}
        self._export.standing.held = held
