"""Nodes that Slurm or Kubernetes manage: what is held here is closed there, and repairs wait until it is empty."""

from collections.abc import Callable

import pytest

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Arrived, Declared, Deployment, Managed, Managing
from controller.core.fleet.views import OwnerOrder
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine, ConditionLine, HoldLine, NoteLine
from vocab.messages import ActionItem
from vocab.states import ActionKind, ActionState, Level

DRAIN, RELEASE, RESET = ActionKind.DRAIN, ActionKind.RELEASE, ActionKind.RESET_GPU
IDLE = Deployment(name="idle", replicas=0)


class Cluster:
    """A Slurm as an adapter sees it: it does what it is ordered, unless told otherwise."""

    def __init__(self, world: World, *, resume_lifts: bool = True) -> None:
        self.world = world
        self.managing = Managing(by="slurm", nodes=True, whole=True, resume_lifts=resume_lifts)
        self.busy = dict.fromkeys(world.nodes, False)
        self.ours: set[str] = set()
        self.other: dict[str, str] = {}
        self.began_at = 500.0
        self.ok = True
        world.tell(self.managing)

    def look(self) -> None:
        """Tell how everything is."""
        for name in self.world.nodes:
            self.world.tell(
                Managed(
                    node=name,
                    by="slurm",
                    ours=(name,) if name in self.ours else (),
                    busy=self.busy[name],
                    other=self.other.get(name, ""),
                    began_at=self.began_at,
                )
            )
        said = self.managing
        self.world.tell(
            Managing(by="slurm", ok=self.ok, why="", nodes=True, whole=True, resume_lifts=said.resume_lifts)
        )

    def obey(self) -> None:
        """Carry out what is ordered, and tell."""
        orders = self.world.core.orders()
        for order in orders:
            (self.ours.add if order.action.of is DRAIN else self.ours.discard)(order.node)
        self.look()
        for order in orders:
            self.answer(order, ActionState.RUNNING if order.action.of is DRAIN else ActionState.DONE)

    def answer(self, order: OwnerOrder, state: ActionState) -> None:
        """What the adapter says of an order."""
        action = order.action
        item = ActionItem(at=0.0, node=order.node, id=action.id, of=action.of, token=action.token, state=state)
        self.world.tell(Arrived(node=order.node, item=item))

    def run(self, seconds: float) -> None:
        """Time passes, and it obeys all along."""
        end = self.world.now + seconds
        while self.world.now < end:
            self.world.run(2)
            self.obey()


Make = Callable[..., tuple[World, Cluster]]


@pytest.fixture
def make() -> Make:
    def make(nodes: int = 2, *, resume_lifts: bool = True, **more: object) -> tuple[World, Cluster]:
        settings = Settings(limits=Limits(closed_ratio=0.5))
        world = World([Node(f"n{n + 1}", 8, **more) for n in range(nodes)], [IDLE], settings)  # type: ignore[arg-type]
        for node in world.nodes.values():
            node.obeys = True
        cluster = Cluster(world, resume_lifts=resume_lifts)
        cluster.look()
        world.run(12)
        return world, cluster

    return make


def closings(world: World) -> list[ActionLine]:
    return [line for line in world.actions(DRAIN, RELEASE) if line.rule == "manager/slurm"]


def states(world: World) -> list[tuple[ActionKind, ActionState]]:
    return [(line.of, line.state) for line in closings(world)]


def test_a_fault_closes_the_whole_node_and_names_the_other_seven(make: Make) -> None:
    world, _ = make()
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(4)
    (order,) = closings(world)
    assert (order.state, order.subject.node) == (ActionState.ORDERED, "n1")
    assert [subject.gpu for subject in order.disrupts] == list(node.gpus[1:])
    assert "all of its 8 GPUs" in order.why
    (asked,) = world.core.orders()
    (hold,) = world.placed()
    assert (asked.by, asked.node, asked.hold) == ("slurm", "n1", hold.id)


def test_a_reset_waits_until_no_job_runs_on_the_node(make: Make) -> None:
    world, cluster = make()
    node = world.nodes["n1"]
    cluster.busy["n1"] = True
    node.hit(node.gpus[0], "xid:95", world.now)
    cluster.run(120)
    assert states(world) == [(DRAIN, ActionState.ORDERED), (DRAIN, ActionState.RUNNING)]
    assert [(line.state, line.why) for line in world.actions(RESET)][-1] == (
        ActionState.WAITING,
        "slurm must have closed n1, and its work there must have ended",
    )
    cluster.busy["n1"] = False
    cluster.run(20)
    assert states(world)[-1] == (DRAIN, ActionState.DONE)
    assert ActionState.DONE in [line.state for line in world.actions(RESET)]


def test_once_it_is_well_the_node_is_given_back(make: Make) -> None:
    world, cluster = make()
    node = world.nodes["n1"]
    node.hit(node.gpus[0], "xid:95", world.now)
    cluster.run(30)
    assert cluster.ours == {"n1"}
    cluster.run(700)
    assert world.core.view().holds == ()
    assert states(world)[-2:] == [(RELEASE, ActionState.ORDERED), (RELEASE, ActionState.DONE)]
    assert cluster.ours == set()
    assert world.core.orders() == ()


def test_two_holds_close_it_once_and_the_last_one_opens_it(make: Make) -> None:
    world, cluster = make()
    gpus = world.nodes["n1"].gpus
    world.ask("hold", gpu=gpus[0], reason="fan")
    world.ask("hold", gpu=gpus[1], reason="fan")
    cluster.run(6)
    assert states(world).count((DRAIN, ActionState.ORDERED)) == 1
    world.ask("lift", gpu=gpus[0])
    cluster.run(6)
    assert cluster.ours == {"n1"}
    world.ask("lift", gpu=gpus[1])
    cluster.run(6)
    assert cluster.ours == set()


def test_a_closing_is_not_ordered_beyond_the_budget_and_one_is_always_possible(make: Make) -> None:
    world, cluster = make(nodes=3)
    for name in ("n1", "n2"):
        world.ask("hold", gpu=world.nodes[name].gpus[0], reason="fan")
    cluster.run(10)
    waiting = [line for line in closings(world) if line.state is ActionState.WAITING]
    assert [(line.subject.node, line.budget) for line in waiting if line.budget] != []
    (line,) = waiting
    assert line.budget is not None
    assert (line.budget.limit, line.budget.used, line.budget.of) == (
        12,
        8,
        "GPUs of slurm's nodes that are closed there",
    )
    assert cluster.ours == {"n1"}
    world.ask("lift", node="n1", gpu=world.nodes["n1"].gpus[0])
    cluster.run(10)
    assert cluster.ours == {"n2"}


@pytest.mark.parametrize("level", [Level.OBSERVE, Level.FENCE])
def test_below_its_level_nothing_is_ordered_and_what_would_be_is_said(make: Make, level: Level) -> None:
    world, cluster = make(level=level)
    world.ask("hold", gpu=world.nodes["n1"].gpus[0], reason="fan")
    cluster.run(10)
    assert states(world) == [(DRAIN, ActionState.WOULD)]
    assert cluster.ours == set()


def test_a_pause_takes_an_order_back_that_was_not_carried_out(make: Make) -> None:
    world, _ = make()
    world.ask("hold", gpu=world.nodes["n1"].gpus[0], reason="fan")
    world.run(4)
    assert len(world.core.orders()) == 1
    world.ask("pause", reason="stop")
    assert world.core.orders() == ()
    world.ask("resume", reason="go")
    assert len(world.core.orders()) == 1


def test_giving_back_goes_on_while_paused(make: Make) -> None:
    world, cluster = make()
    world.ask("hold", gpu=world.nodes["n1"].gpus[0], reason="fan")
    cluster.run(6)
    world.ask("pause", reason="stop")
    world.ask("lift", gpu=world.nodes["n1"].gpus[0])
    cluster.run(6)
    assert cluster.ours == set()


def test_a_persons_resume_lifts_the_policys_hold(make: Make) -> None:
    world, cluster = make()
    node = world.nodes["n1"]
    cluster.busy["n1"] = True
    node.hit(node.gpus[0], "xid:95", world.now)
    cluster.run(20)
    cluster.ours.clear()
    cluster.run(20)
    lifted = [line for line in world.lines if isinstance(line, HoldLine) and line.op == "lifted"]
    assert [line.reason for line in lifted] == ["a person gave it back in slurm"]
    assert cluster.ours == set()
    assert world.ordered(RESET) == []


def test_a_resume_under_a_persons_hold_is_closed_again(make: Make) -> None:
    world, cluster = make()
    world.ask("hold", gpu=world.nodes["n1"].gpus[0], reason="fan")
    cluster.run(6)
    cluster.ours.clear()
    cluster.run(6)
    assert cluster.ours == {"n1"}


def test_a_resume_may_be_refused_and_a_fight_ends(make: Make) -> None:
    world, cluster = make(resume_lifts=False)
    node = world.nodes["n1"]
    cluster.busy["n1"] = True
    node.hit(node.gpus[0], "xid:95", world.now)
    cluster.run(10)
    for again in (True, True, False):
        cluster.ours.clear()
        cluster.run(10)
        assert (cluster.ours == {"n1"}) is again
    orders = [line.why for line in closings(world) if line.state is ActionState.ORDERED and line.of is DRAIN]
    assert [why.startswith("somebody opened it in slurm, but a hold stands") for why in orders] == [False, True, True]
    assert any(getattr(line, "code", "") == "manager_disagrees" for line in world.lines)


def test_a_manager_that_was_restarted_and_has_forgotten_is_told_again(make: Make) -> None:
    world, cluster = make()
    node = world.nodes["n1"]
    cluster.busy["n1"] = True
    node.hit(node.gpus[0], "xid:95", world.now)
    cluster.run(20)
    cluster.ours.clear()
    cluster.began_at = world.now + 1
    cluster.run(10)
    assert cluster.ours == {"n1"}
    assert len(world.core.view().holds) == 1


def test_while_it_does_not_answer_nothing_is_lost_and_nothing_repaired(make: Make) -> None:
    world, cluster = make()
    node = world.nodes["n1"]
    cluster.ok = False
    cluster.look()
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(3600)
    assert states(world) == [(DRAIN, ActionState.ORDERED)]
    assert world.ordered(RESET) == []
    cluster.ok = True
    cluster.run(20)
    assert ActionState.DONE in [line.state for line in world.actions(RESET)]


def test_somebody_else_at_work_is_left_alone_and_said(make: Make) -> None:
    world, cluster = make()
    node = world.nodes["n1"]
    cluster.other["n1"] = "drained in slurm by somebody else (NHC: nvidia-smi)"
    cluster.look()
    node.hit(node.gpus[0], "xid:95", world.now)
    cluster.run(60)
    assert cluster.ours == set()
    assert states(world) == [(DRAIN, ActionState.WAITING)]
    assert world.ordered(RESET) == []
    assert "NHC" in world.actions(RESET)[-1].why
    opened = [line for line in world.lines if isinstance(line, ConditionLine) and line.code == "other_remediator"]
    assert [(line.state, line.subject.node) for line in opened] == [("open", "n1")]
    assert [each.others for each in world.core.view().nodes] == [(cluster.other["n1"],), ()]
    cluster.other.clear()
    cluster.run(60)
    assert [each.others for each in world.core.view().nodes] == [(), ()]
    assert ActionState.DONE in [line.state for line in world.actions(RESET)]
    ended = [line for line in world.lines if isinstance(line, ConditionLine) and line.code == "other_remediator"]
    assert [line.state for line in ended] == ["open", "cleared"]


def test_a_drain_that_nothing_of_ours_waits_for_is_no_ones_business(make: Make) -> None:
    world, cluster = make()
    cluster.other["n1"] = "drained in slurm by somebody else (new fans)"
    cluster.run(20)
    assert [line for line in world.lines if isinstance(line, ConditionLine)] == []


def test_a_refusal_is_not_repeated_until_another_hold(make: Make) -> None:
    world, cluster = make()
    gpus = world.nodes["n1"].gpus
    world.ask("hold", gpu=gpus[0], reason="fan")
    world.run(2)
    cluster.answer(world.core.orders()[0], ActionState.REFUSED)
    cluster.run(20)
    assert (DRAIN, ActionState.REFUSED) in states(world)
    assert cluster.ours == set()
    world.ask("hold", gpu=gpus[1], reason="fan")
    cluster.run(6)
    assert cluster.ours == {"n1"}


def test_a_person_may_call_a_closing_off(make: Make) -> None:
    world, cluster = make()
    world.ask("hold", gpu=world.nodes["n1"].gpus[0], reason="fan")
    world.run(2)
    world.ask("cancel", action=world.core.orders()[0].action.id)
    cluster.run(20)
    assert cluster.ours == set()
    assert len([line for line in closings(world) if line.of is DRAIN and line.state is ActionState.ORDERED]) == 1


def test_a_restart_of_the_controller_changes_nothing(make: Make) -> None:
    world, cluster = make()
    world.ask("hold", gpu=world.nodes["n1"].gpus[0], reason="fan")
    cluster.run(10)
    before = states(world)
    world.restart()
    world.tell(cluster.managing)
    world.run(40)
    cluster.run(10)
    assert states(world) == before
    assert cluster.ours == {"n1"}
    world.ask("lift", gpu=world.nodes["n1"].gpus[0])
    cluster.run(6)
    assert cluster.ours == set()


def test_until_a_manager_has_answered_no_repair_and_no_start(make: Make) -> None:
    world = World([Node("n1", 8)], [Deployment(name="chat", replicas=1, min_ready=1)])
    world.tell(Managing(by="slurm", nodes=True, whole=True))
    world.run(60)
    assert world.ordered(ActionKind.START_REPLICA) == []
    world.tell(Managing(by="slurm", ok=True, why="", nodes=True, whole=True))  # and it has none of the nodes
    world.run(20)
    assert len(world.ordered(ActionKind.START_REPLICA)) == 1


def test_nothing_of_ours_is_started_on_a_managers_node(make: Make) -> None:
    world, cluster = make()
    world.tell(Declared(deployment=Deployment(name="chat", replicas=1, min_ready=1)))
    cluster.run(60)
    assert world.ordered(ActionKind.START_REPLICA) == []


def test_what_was_heard_before_an_order_is_not_taken_for_its_outcome(make: Make) -> None:
    world, cluster = make()
    world.ask("hold", gpu=world.nodes["n1"].gpus[0], reason="fan")
    world.run(2)
    cluster.ours.add("n1")  # carried out, and not told yet
    world.ask("lift", gpu=world.nodes["n1"].gpus[0])
    world.run(2)
    assert [(order.action.of, order.node) for order in world.core.orders()] == [(RELEASE, "n1")]
    cluster.run(4)
    assert cluster.ours == set()


def test_a_mark_that_no_hold_explains_is_said_and_left_to_a_person(make: Make) -> None:
    world, cluster = make()
    cluster.ours.add("n2")
    cluster.run(20)
    assert cluster.ours == {"n2"}
    notes = [line for line in world.lines if isinstance(line, NoteLine)]
    assert [(note.code, note.subject.node) for note in notes] == [("manager_mark_orphaned", "n2")]
