"""What no sequence of faults, silences, restarts and orders may bring about. The real core, in virtual time."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine, HoldLine, IncidentLine, StateLine
from vocab.states import PHASE_MOVES, REPAIRS, REPLICA_MOVES, ActionKind, ActionState, Phase, ReplicaState

CHAT = Deployment(name="chat", replicas=3, min_ready=2)
PAIR = Deployment(name="pair", replicas=1, gpus_per_replica=2, min_ready=1)
LIMITS = Limits(cordons=4, cordons_ratio=0.5, repairs=1)
NODES, GPUS = 2, 5

HARMLESS = ("xid:13", "xid:45", "thermal_slowdown", "activity_contradiction")  # nothing is ever done for these
HARMFUL = ("xid:79", "xid:95", "gpu_lost", "remap_failed", "ecc_uncorrectable")

where = st.tuples(st.integers(1, NODES), st.integers(0, GPUS - 1))
moments = st.one_of(
    st.tuples(st.just("hit"), where, st.sampled_from(HARMLESS + HARMFUL)),
    st.tuples(st.just("fenced"), where, st.sampled_from(HARMFUL)),
    st.tuples(st.just("injected"), where, st.sampled_from(HARMFUL)),
    st.tuples(st.just("clear"), where, st.just("")),
    st.tuples(st.just("blind"), where, st.just("")),
    st.tuples(st.just("crash"), where, st.just("")),
    st.tuples(st.just("silent"), where, st.sampled_from(("begin", "end"))),
    st.tuples(st.just("reboot"), where, st.just("")),
    st.tuples(st.just("ask"), where, st.sampled_from(("pause", "resume", "approve", "hold", "lift", "drain"))),
    st.tuples(st.just("restart"), where, st.just("")),
    st.tuples(st.just("twice"), where, st.just("")),
)
plays = st.lists(st.tuples(moments, st.sampled_from((2, 6, 20, 70))), max_size=12)


def happen(world: World, what: str, at: tuple[int, int], how: str) -> None:
    """One moment of a play."""
    node = world.nodes[f"n{at[0]}"]
    gpu = node.gpus[at[1]]
    if what in {"hit", "fenced", "injected"}:
        node.hit(gpu, how, world.now, fence=what == "fenced", injected=what == "injected")
    elif what == "clear":
        node.clear(gpu, world.now)
    elif what == "blind":
        node.blind ^= {gpu}
    elif what == "crash":
        for name in [n for n, process in node.processes.items() if gpu in {m.gpu for m in process.spec.members}]:
            node.crash(name)
    elif what == "silent":
        node.silent = how == "begin"
    elif what == "reboot":
        node.reboot(world.now)
    elif what == "ask":
        world.ask(how, gpu=gpu, reason="because")
    elif what == "restart":
        world.restart()
    elif what == "twice":
        world.run(4, twice=True)


def watch(world: World) -> None:
    """What must hold at every moment."""
    ledger = world.core._fleet.ledger  # the view of it costs ten times more, and this is looked at every 2 s
    held = [hold for hold in ledger.holds.values() if hold.owner == "policy" and hold.subject.gpu]
    recent = {hold.subject for hold in held if hold.at > world.now - LIMITS.window_s}
    assert len(recent) <= max(1, min(LIMITS.cordons, int(LIMITS.cordons_ratio * NODES * GPUS)))
    repairs = ledger.live(*REPAIRS)
    assert sum(action.state in {ActionState.ORDERED, ActionState.RUNNING} for action in repairs) <= LIMITS.repairs


def serving(world: World, deployment: str) -> int:
    """The processes of a deployment that step and were not told to go."""
    processes = [p for node in world.nodes.values() for p in node.processes.values()]
    mine = [process for process in processes if process.spec.deployment == deployment]
    return sum(process.exit is None and process.drain_at is None for process in mine)


def play(moves: list[tuple[tuple[str, tuple[int, int], str], int]]) -> World:
    """A whole play, watched."""
    world = World([Node(f"n{n + 1}", GPUS) for n in range(NODES)], (CHAT, PAIR), Settings(limits=LIMITS))
    world.run(12)
    for (what, at, how), seconds in moves:
        happen(world, what, at, how)
        for _ in range(seconds // 2):
            world.run(2)
            watch(world)
    return world


SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(plays)
def test_budgets_words_and_ends_hold_whatever_happens(
    moves: list[tuple[tuple[str, tuple[int, int], str], int]],
) -> None:
    world = play(moves)
    _no_action_moves_after_its_end(world)
    _words_move_as_the_tables_say(world)
    _no_hold_without_a_reason(world)
    orders = [(line.id, line.token) for line in world.ordered()]
    assert len(orders) == len(set(orders))


def _no_action_moves_after_its_end(world: World) -> None:
    ended: set[str] = set()
    for line in world.actions():
        assert line.id not in ended, line
        if line.state in {ActionState.DONE, ActionState.FAILED, ActionState.TIMED_OUT, ActionState.CANCELLED}:
            ended.add(line.id)


def _words_move_as_the_tables_say(world: World) -> None:
    phases = {phase.value for phase in Phase}
    for line in world.lines:
        if isinstance(line, StateLine) and line.subject.replica and line.from_:
            assert ReplicaState(line.to) in REPLICA_MOVES[ReplicaState(line.from_)], line
        elif isinstance(line, StateLine) and line.subject.gpu:
            before = Phase(line.from_) if line.from_ in phases else Phase.IN_SERVICE
            after = Phase(line.to) if line.to in phases else Phase.IN_SERVICE
            assert before is after or after in PHASE_MOVES[before], line


def _no_hold_without_a_reason(world: World) -> None:
    """Every hold of the policy stands for an open incident, which an event that counts has opened."""
    events = {line.event.id: line.event for line in world.lines if hasattr(line, "event")}
    roots = {line.id: line.root for line in world.lines if isinstance(line, IncidentLine)}
    for hold in world.placed():
        assert not events[roots[str(hold.incident)]].injected
        assert events[roots[str(hold.incident)]].code in HARMFUL
    open_now = {incident.id for incident in world.core.view().incidents}
    for hold in world.core.view().holds:
        assert hold.owner != "policy" or hold.incident in open_now


quiet = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just("hit"), where, st.sampled_from(HARMLESS)),
            st.tuples(st.just("injected"), where, st.sampled_from(HARMFUL)),
            st.tuples(st.just("blind"), where, st.just("")),
            st.tuples(st.just("silent"), where, st.sampled_from(("begin", "end"))),
            st.tuples(st.just("restart"), where, st.just("")),
        ),
        st.sampled_from((2, 20, 70)),
    ),
    max_size=12,
)


@SLOW
@given(quiet)
def test_unknown_and_injected_never_hold_or_move_anything(
    moves: list[tuple[tuple[str, tuple[int, int], str], int]],
) -> None:
    world = play(moves)
    assert not [line for line in world.lines if isinstance(line, HoldLine)]
    starts = world.ordered(ActionKind.START_REPLICA)
    assert len(starts) == CHAT.replicas + PAIR.replicas
    assert [
        line for line in world.lines if isinstance(line, ActionLine) and line.of is not ActionKind.START_REPLICA
    ] == []


ANSWERING = tuple(code for code in HARMFUL if code not in {"xid:79", "gpu_lost"})  # a lost GPU serves nobody
faults = st.lists(st.tuples(where, st.sampled_from(ANSWERING), st.booleans(), st.sampled_from((2, 6, 20))), max_size=10)


@SLOW
@given(faults)
def test_no_fault_takes_a_deployment_under_its_floor_while_its_gpus_work(
    hits: list[tuple[tuple[int, int], str, bool, int]],
) -> None:
    world = World([Node(f"n{n + 1}", GPUS) for n in range(NODES)], (CHAT, PAIR), Settings(limits=LIMITS))
    world.run(12)
    for at, code, fence, seconds in hits:
        node = world.nodes[f"n{at[0]}"]
        node.hit(node.gpus[at[1]], code, world.now, fence=fence)
        for _ in range(seconds // 2):
            world.run(2)
            assert serving(world, "chat") >= CHAT.min_ready
            assert serving(world, "pair") >= PAIR.min_ready
    for _ in range(60):
        world.run(2)
        assert serving(world, "chat") >= CHAT.min_ready
        assert serving(world, "pair") >= PAIR.min_ready
