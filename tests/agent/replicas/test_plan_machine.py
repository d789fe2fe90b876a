"""The plan against a world of replicas that crash, hang and refuse, in any order that hypothesis finds."""

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent.replicas.plan import LIVING, RESTARTS, WINDOW_S, Actual, Stage, gpus, plan
from agent.replicas.steps import Drain, Fence, Forget, GiveUp, Kill, Start, Step, Terminate, Unfence, Withdraw
from tests.agent.replicas.node import spec
from vocab.messages import ReplicaSpec

GPUS = ("GPU-1", "GPU-2", "GPU-3")
NAMES = ("r1", "r2", "r3")
PLACES = (("GPU-1",), ("GPU-2",), ("GPU-1", "GPU-2"), ("GPU-3",))

SPECS = st.builds(
    lambda name, place, phase, token, prestop_s: spec(name, *place, phase=phase, token=token, prestop_s=prestop_s),
    st.sampled_from(NAMES),
    st.sampled_from(PLACES),
    st.sampled_from(("run", "run", "drain", "stop")),
    st.sampled_from(("1.1", "1.2")),
    st.sampled_from((0.0, 3.0)),
)
DESIRED = st.lists(SPECS, max_size=3, unique_by=lambda each: each.replica)
HEARING = st.sampled_from(("takes", "silent", "refuses"))


class World(RuleBasedStateMachine):
    """Replicas as the supervisor's shell keeps them, but for the processes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.desired: tuple[ReplicaSpec, ...] | None = None
        self.fenced: frozenset[str] = frozenset()
        self.found: dict[str, Actual] = {}
        self.hearing: dict[str, str] = {}
        self.restarts: dict[tuple[str, str], list[float]] = {}

    # -- what happens -----------------------------------------------------------------------------------

    @initialize(desired=st.none() | DESIRED)
    def begin(self, desired: list[ReplicaSpec] | None) -> None:
        self.desired = None if desired is None else tuple(desired)

    @rule(desired=DESIRED)
    def order(self, desired: list[ReplicaSpec]) -> None:
        self.desired = tuple(desired)

    @rule(gpu=st.sampled_from(GPUS))
    def fence(self, gpu: str) -> None:
        self.fenced ^= {gpu}

    @rule(seconds=st.sampled_from((0.1, 1.0, 10.0, 30.0, 700.0)))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(name=st.sampled_from(NAMES), hearing=HEARING)
    def become(self, name: str, hearing: str) -> None:
        self.hearing[name] = hearing

    @precondition(lambda self: any(each.stage in LIVING for each in self.found.values()))
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A process exits or crashes by itself."""
        name = data.draw(st.sampled_from(sorted(n for n, each in self.found.items() if each.stage in LIVING)))
        self.over(name)

    def over(self, name: str) -> None:
        each = self.found[name]
        crashes = each.crashes if each.asked else (*each.crashes, self.now)
        self.found[name] = msgspec.structs.replace(each, stage=Stage.ENDED, stage_at=self.now, crashes=crashes)

    @rule()
    def turn(self) -> None:
        """One turn of the loop."""
        for step in self.steps():
            self.check(step)
            self.do(step)

    # -- the shell, without processes -------------------------------------------------------------------

    def steps(self) -> tuple[Step, ...]:
        return plan(self.desired, tuple(self.found.values()), self.fenced, self.now)

    def change(self, name: str, **more: object) -> None:
        self.found[name] = msgspec.structs.replace(self.found[name], **more)

    def heard(self, name: str, **if_taken: object) -> None:
        hearing = self.hearing.get(name, "takes")
        taken = {"tried_at": None, **if_taken} if hearing == "takes" else {"tried_at": self.now}
        self.change(name, refuses=hearing == "refuses", **taken)

    def enter(self, name: str, stage: Stage) -> None:
        self.change(name, stage=stage, stage_at=self.now, asked=stage is not Stage.WITHDRAWN)

    def do(self, step: Step) -> None:
        name = step.replica
        match step:
            case Start():
                self.found[name] = Actual(
                    replica=name, stage=Stage.RUNNING, spec=step.spec, stage_at=self.now, crashes=step.crashes
                )
            case Fence():
                self.heard(name, admitting=False)
            case Unfence():
                stage = {"stage": Stage.RUNNING} if self.found[name].stage is Stage.WITHDRAWN else {}
                self.heard(name, admitting=True, **stage)
            case Withdraw():
                self.enter(name, Stage.WITHDRAWN)
                self.heard(name, admitting=False)
            case Drain():
                if self.found[name].stage is not Stage.DRAINING:
                    self.enter(name, Stage.DRAINING)
                self.heard(name, admitting=False, drain_taken=True)
            case Terminate():
                self.enter(name, Stage.TERMINATED)
            case Kill():
                self.enter(name, Stage.KILLED)
                self.over(name)
            case GiveUp():
                self.change(name, given_up=True)
            case Forget():
                del self.found[name]

    # -- what must hold ---------------------------------------------------------------------------------

    def check(self, step: Step) -> None:
        each = self.found.get(step.replica)
        if self.desired is None:
            assert isinstance(step, Fence)
        match step:
            case Start():
                assert not gpus(step.spec) & self.fenced
                if each is not None and not each.asked and each.crashes and each.spec.token == step.spec.token:
                    self.restarts.setdefault((step.replica, step.spec.token), []).append(self.now)
            case Terminate():
                assert each is not None
                waited = self.now - each.stage_at
                assert each.refuses or (each.stage is Stage.DRAINING and waited >= each.spec.drain_s)
            case Kill():
                assert each is not None
                assert each.stage in {Stage.TERMINATED, Stage.KILLED}
                assert self.now - each.stage_at >= each.spec.kill_s
            case Unfence():
                assert each is not None
                assert not gpus(each.spec) & self.fenced
            case Forget():
                assert each is not None
                assert each.stage is Stage.ENDED

    @invariant()
    def no_two_living_processes_share_a_gpu(self) -> None:
        used = [gpu for each in self.found.values() if each.stage in LIVING for gpu in gpus(each.spec)]
        assert len(used) == len(set(used))

    @invariant()
    def the_same_question_has_the_same_answer(self) -> None:
        assert self.steps() == self.steps()

    def teardown(self) -> None:
        """Left in peace, the node becomes what is desired."""
        self.hearing = {}
        for _ in range(40):
            self.turn()
            for name, each in list(self.found.items()):
                if each.stage is Stage.DRAINING and each.drain_taken:
                    self.over(name)  # an engine that drains ends
                elif each.stage in {Stage.TERMINATED, Stage.KILLED} and self.now - each.stage_at > 1.0:
                    self.over(name)
            self.now += 5.0
        if self.desired is None:
            return
        living = {name for name, each in self.found.items() if each.stage in LIVING}
        wanted = {each.replica: each for each in self.desired if each.phase == "run"}
        assert living <= wanted.keys()
        held = frozenset().union(*(gpus(self.found[name].spec) for name in living))
        for name, each in wanted.items():
            given_up = name in self.found and self.found[name].given_up
            assert name in living or given_up or gpus(each) & (self.fenced | held)


World.TestCase.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestWorld = World.TestCase


def test_the_restart_budget_holds_over_any_history() -> None:
    """A replica that dies at once, every time: restarts within any window never exceed the budget."""
    world = World()
    world.desired = (spec("r1", "GPU-1"),)
    for _ in range(4000):
        world.turn()
        if world.found["r1"].stage in LIVING:
            world.over("r1")
        world.now += 1.0
    times = world.restarts[("r1", "1.1")]
    assert all(sum(at <= other < at + WINDOW_S for other in times) <= RESTARTS for at in times)
    assert world.found["r1"].given_up
