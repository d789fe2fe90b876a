"""Replicas: a busy engine steps, a wedged one has work and does not step, a dead one has exited.

An endpoint that answers 200 proves nothing: what counts is the step counter. Stalled is: work waits or
runs, and no step for max(5 s, 5 times the engine's own p99.9 step). What is not known this time changes
nothing. A counter that falls is a restarted engine.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import Scene
from vocab.events import Evidence, Source, rfc3339
from vocab.observations import AnyObservation, Exit, ReplicaSeen

STALLED, DIED = "replica_stalled", "replica_died"
LEAST_S = 5.0  # a step of a long prefill on a large model takes seconds
SLOWEST_STEPS = 5.0
ASKED = frozenset({"draining", "stopped"})  # phases in which an end is what was asked for
JUDGED = frozenset({"ready", "draining", None})  # a starting engine compiles and loads: minutes without a step
CUT_OFF = 3  # exit code of an engine whose drain ran out of time


class Pulse(msgspec.Struct):
    """The last step counter of a replica, and since when work has waited at it."""

    step: int | None = None
    waiting_since: float | None = None
    stalled: bool = False
    died: bool = False
    phase: str | None = None


class ReplicaProbe(msgspec.Struct):
    """Follows the pulse of every replica of the node."""

    pulses: dict[str, Pulse] = {}

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take one look at one replica."""
        if not isinstance(observation, ReplicaSeen):
            return ()
        pulse = self.pulses.setdefault(observation.replica, Pulse())
        if observation.exit is not None:
            return self._ended(observation, observation.exit, pulse)
        verdicts: list[Verdict] = []
        if pulse.died:
            pulse.died = False
            verdicts.append(Clear(code=DIED, at=observation.at, name=observation.replica))
        verdicts.extend(self._step(observation, pulse, now))
        pulse.phase = observation.phase or pulse.phase
        return verdicts

    def _ended(self, seen: ReplicaSeen, how: Exit, pulse: Pulse) -> Sequence[Verdict]:
        asked = pulse.phase in ASKED or (how.code == 0 and how.signal is None)
        if pulse.died or asked:
            return ()
        pulse.died, pulse.stalled, pulse.waiting_since, pulse.step = True, False, None, None
        return (_died(seen, how),)

    def _step(self, seen: ReplicaSeen, pulse: Pulse, now: float) -> Sequence[Verdict]:
        work = None if seen.running is None and seen.waiting is None else (seen.running or 0) + (seen.waiting or 0)
        if seen.step is None or work is None:
            return ()
        if seen.step != pulse.step or work == 0:
            return self._moves(seen, pulse, now, work)
        if seen.phase not in JUDGED:
            return ()
        pulse.waiting_since = now if pulse.waiting_since is None else pulse.waiting_since
        patience = max(LEAST_S, SLOWEST_STEPS * (seen.p999_step_s or 0.0))
        if pulse.stalled or now - pulse.waiting_since < patience:
            return ()
        pulse.stalled = True
        return (_stalled(seen, now - pulse.waiting_since),)

    def _moves(self, seen: ReplicaSeen, pulse: Pulse, now: float, work: int) -> Sequence[Verdict]:
        stepped = pulse.step is not None and seen.step != pulse.step
        pulse.step, pulse.waiting_since = seen.step, (now if work else None)
        if not (pulse.stalled and stepped):
            return ()
        pulse.stalled = False
        return (Clear(code=STALLED, at=seen.at, name=seen.replica),)


def _gpus(seen: ReplicaSeen) -> list[str]:
    return [member.gpu for member in seen.members] or list(seen.gpus)


def _fields(seen: ReplicaSeen) -> dict[str, object]:
    return {"replica": seen.replica, "deployment": seen.deployment, "gpus": _gpus(seen)}


def _stalled(seen: ReplicaSeen, for_s: float) -> Finding:
    stamp = rfc3339(seen.at)
    readings = {"step": seen.step, "running": seen.running, "waiting": seen.waiting, "without_step_s": round(for_s, 3)}
    return Finding(
        code=STALLED,
        at=seen.at,
        source=Source.ENGINE,
        first=(STALLED, seen.replica, seen.step, stamp),
        pid=seen.pids[0] if seen.pids else None,
        fields=_fields(seen) | {"health": seen.health},
        text=f"no step for {for_s:.1f} s while {seen.running or 0} requests run and {seen.waiting or 0} wait",
        evidence=(Evidence(source="engine", at=stamp, readings=readings),),
    )


def _died(seen: ReplicaSeen, how: Exit) -> Finding:
    stamp = rfc3339(seen.at)
    ending = f"signal {how.signal}" if how.signal else f"code {how.code}" if how.code is not None else "no trace"
    exit_fields = {name: value for name, value in msgspec.to_builtins(how).items() if name != "text"}
    return Finding(
        code=DIED,
        at=seen.at,
        source=Source.ENGINE,
        first=(DIED, seen.replica, stamp),
        pid=seen.pids[0] if seen.pids else None,
        fields=_fields(seen) | {"exit": exit_fields},
        text=f"the replica's process ended by itself ({ending}){': ' + how.text if how.text else ''}",
        evidence=(Evidence(source="engine", at=stamp, readings={"exit": exit_fields}),),
    )
