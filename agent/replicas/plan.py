"""What to do now: (desired, actual, fenced, now) -> steps. Pure; times are monotonic seconds.

Each replica has a *want* (what Desired says of it) and a *stage* (how far its process is); the rule for the
pair is looked up in a table.

Promises, held by a state machine test:
- Without a Desired nothing is started, stopped or unfenced: an agent that knows nothing keeps all running.
- A process is never killed before it was told to drain, had its time, and got SIGTERM and ``kill_s`` more.
- No two living processes share a GPU, and none is started on a fenced one.
- One part of a group over several nodes is never started anew: whoever knows all parts ends them and starts others.
- An exit that was asked for cannot be taken back: the process ends first, then a new one starts.
- After ``RESTARTS`` restarts within ``WINDOW_S`` a crashing replica stays down until a new token orders it.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from agent.replicas.steps import Drain, Fence, Forget, GiveUp, Kill, Start, Step, Terminate, Unfence, Withdraw
from vocab.messages import ReplicaSpec
from wire.backoff import delay_s

RESTARTS = 3  # restarts of a crashing replica ...
WINDOW_S = 600.0  # ... within this time; more means that starting again does not help
RETRY_S = 1.0  # between two tries of an order that was not answered
GRACE_S = 2.0  # an engine ends what is left at its deadline itself; that long it may take to exit
FENCE_RETRY_S = 0.25  # a fence matters more than the few requests it costs


class Want(StrEnum):
    """What Desired says of a replica."""

    RUN = "run"
    END = "end"  # drain or stop
    UNNAMED = "unnamed"
    UNKNOWN = "unknown"  # no Desired has been received yet


class Stage(StrEnum):
    """How far a replica's process is, in the order of a life."""

    ABSENT = "absent"
    RUNNING = "running"
    WITHDRAWN = "withdrawn"
    DRAINING = "draining"
    TERMINATED = "terminated"
    KILLED = "killed"
    ENDED = "ended"


LIVING = frozenset({Stage.RUNNING, Stage.WITHDRAWN, Stage.DRAINING, Stage.TERMINATED, Stage.KILLED})


class Actual(msgspec.Struct, frozen=True, kw_only=True):
    """A replica as the supervisor finds it; ``spec`` is what its process was started for."""

    replica: str
    stage: Stage
    spec: ReplicaSpec
    admitting: bool | None = None  # what it last said; None: not known
    stage_at: float = 0.0  # when the stage was entered; of DRAINING: when it was first told to exit
    tried_at: float | None = None  # the last order that it did not take
    refuses: bool = False  # its port refuses connections: it cannot be asked, only signalled
    drain_taken: bool = False  # it answered the order to exit
    crashes: tuple[float, ...] = ()
    asked: bool = False  # its end was asked for
    given_up: bool = False


class Case(msgspec.Struct, frozen=True):
    """What a rule sees: the wanted spec, the actual replica, the GPUs it may not use, the time."""

    wanted: ReplicaSpec | None
    actual: Actual
    fenced: frozenset[str]
    busy: frozenset[str]  # GPUs on which another replica's process lives
    now: float

    @property
    def spec(self) -> ReplicaSpec:
        """The spec whose times count: the wanted one, else that of the process."""
        return self.wanted or self.actual.spec

    @property
    def may_try(self) -> bool:
        """Whether enough time has gone since the last order that was not taken."""
        return self.actual.tried_at is None or self.now >= self.actual.tried_at + RETRY_S


Rule = Callable[[Case], Step | None]


def gpus(spec: ReplicaSpec) -> frozenset[str]:
    """The UUIDs of a spec's members."""
    return frozenset(member.gpu for member in spec.members)


def is_part(spec: ReplicaSpec) -> bool:
    """Whether it is one of several processes, on other nodes, that live and die together."""
    return len(spec.nodes) > 1


def same_process(wanted: ReplicaSpec, running: ReplicaSpec) -> bool:
    """Whether a process started for ``running`` serves ``wanted``: phase, token and times may differ."""

    def essence(spec: ReplicaSpec) -> tuple[object, ...]:
        return spec.deployment, spec.members, spec.model, spec.engine, spec.options

    return essence(wanted) == essence(running)


def admit(case: Case) -> Step | None:
    """Keep admission as the fences say."""
    actual = case.actual
    if gpus(actual.spec) & case.fenced:
        due = actual.tried_at is None or case.now >= actual.tried_at + FENCE_RETRY_S
        return Fence(actual.replica) if actual.admitting is not False and due else None
    if actual.admitting is False and case.may_try:
        return Unfence(actual.replica)
    return None


def fence_only(case: Case) -> Step | None:
    """Without a Desired: fences are put up, never taken down."""
    step = admit(case)
    return step if isinstance(step, Fence) else None


def run_on(case: Case) -> Step | None:
    """Let it run, unless it was started for something else."""
    assert case.wanted is not None
    return admit(case) if same_process(case.wanted, case.actual.spec) else begin_end(case)


def start(case: Case) -> Step | None:
    """Start it where its GPUs are neither fenced nor held by another process."""
    assert case.wanted is not None
    if gpus(case.wanted) & (case.fenced | case.busy):
        return None
    return Start(case.wanted, _counted(case))


def restart(case: Case) -> Step | None:
    """Start it again: at once if its end was asked for, else after a back-off and within the budget."""
    assert case.wanted is not None
    actual, crashes = case.actual, _counted(case)
    if (actual.given_up or is_part(case.wanted)) and actual.spec.token == case.wanted.token:
        return None
    if actual.asked or not crashes:
        return start(case)
    if len(crashes) > RESTARTS:
        return GiveUp(actual.replica)
    if case.now < actual.stage_at + delay_s(len(crashes), actual.replica, first_s=0.5):
        return None
    return start(case)


def _counted(case: Case) -> tuple[float, ...]:
    """The crashes within the window; a new token is a new order with a budget of its own."""
    if case.wanted is None or case.wanted.token != case.actual.spec.token:
        return ()
    return tuple(at for at in case.actual.crashes if at > case.now - WINDOW_S)


def begin_end(case: Case) -> Step | None:
    """Tell it to go: out of rotation first where balancers need the time, else drain at once."""
    if case.actual.refuses:
        return Terminate(case.actual.replica)
    if not case.may_try:
        return None
    if case.spec.prestop_s > 0:
        return Withdraw(case.actual.replica)
    return Drain(case.actual.replica, case.spec.drain_s)


def readmit(case: Case) -> Step | None:
    """Nothing final was said to it yet: it is let in again, unless a fence keeps it out."""
    if gpus(case.actual.spec) & case.fenced or not case.may_try:
        return None
    return Unfence(case.actual.replica)


def after_prestop(case: Case) -> Step | None:
    """Drain it once balancers have had their time."""
    if case.now < case.actual.stage_at + case.spec.prestop_s or not case.may_try:
        return None
    return Drain(case.actual.replica, case.spec.drain_s)


def await_drain(case: Case) -> Step | None:
    """Ask again until it has answered; at the deadline, or when it cannot be asked, SIGTERM."""
    actual = case.actual
    left = actual.stage_at + case.spec.drain_s - case.now
    if left <= -GRACE_S or (actual.refuses and not actual.drain_taken):
        return Terminate(actual.replica)
    if not actual.drain_taken and case.may_try:
        return Drain(actual.replica, max(0.0, left))
    return None


def await_end(case: Case) -> Step | None:
    """SIGKILL after ``kill_s``, and again each ``kill_s`` while something lives."""
    if case.now < case.actual.stage_at + max(case.spec.kill_s, RETRY_S):
        return None
    return Kill(case.actual.replica)


def forget(case: Case) -> Step | None:
    """Nobody wants it and nothing lives."""
    return Forget(case.actual.replica)


def nothing(_: Case) -> Step | None:
    """All is as it should be."""
    return None


_ENDING: dict[Stage, Rule] = {
    Stage.DRAINING: await_drain,
    Stage.TERMINATED: await_end,
    Stage.KILLED: await_end,
}
RULES: dict[tuple[Want, Stage], Rule] = {
    (Want.RUN, Stage.ABSENT): start,
    (Want.RUN, Stage.RUNNING): run_on,
    (Want.RUN, Stage.WITHDRAWN): readmit,
    **{(Want.RUN, stage): rule for stage, rule in _ENDING.items()},
    (Want.RUN, Stage.ENDED): restart,
    **{
        (want, stage): rule
        for want in (Want.END, Want.UNNAMED)
        for stage, rule in {Stage.RUNNING: begin_end, Stage.WITHDRAWN: after_prestop, **_ENDING}.items()
    },
    (Want.END, Stage.ABSENT): nothing,
    (Want.END, Stage.ENDED): nothing,
    (Want.UNNAMED, Stage.ABSENT): nothing,
    (Want.UNNAMED, Stage.ENDED): forget,
    **{(Want.UNKNOWN, stage): nothing for stage in Stage},
    (Want.UNKNOWN, Stage.RUNNING): fence_only,
}


def want(desired: Sequence[ReplicaSpec] | None, wanted: ReplicaSpec | None) -> Want:
    """What Desired says of a replica; ``wanted`` is its spec in ``desired``."""
    if desired is None:
        return Want.UNKNOWN
    if wanted is None:
        return Want.UNNAMED
    return Want.RUN if wanted.phase == "run" else Want.END


def plan(
    desired: Sequence[ReplicaSpec] | None, actual: Sequence[Actual], fenced: frozenset[str], now: float
) -> tuple[Step, ...]:
    """The steps that bring ``actual`` nearer to ``desired``, at most one a replica, by name."""
    wanted = {spec.replica: spec for spec in desired or ()}
    found = {each.replica: each for each in actual}
    used = {name: gpus(each.spec) for name, each in found.items() if each.stage in LIVING}
    steps = []
    for name in sorted(wanted.keys() | found.keys()):
        spec = wanted.get(name)
        each = found.get(name) or Actual(replica=name, stage=Stage.ABSENT, spec=wanted[name])
        busy = frozenset().union(*(held for owner, held in used.items() if owner != name))
        step = RULES[want(desired, spec), each.stage](Case(spec, each, fenced, busy, now))
        if isinstance(step, Start):
            used[name] = gpus(step.spec)
        if step is not None:
            steps.append(step)
    return tuple(steps)
