"""Whatever is adopted, reverted, demoted and broken, in whatever order: a rule in shadow does nothing harmful."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.core import Core
from controller.core.fleet.settings import Limits, Rule, Settings
from controller.core.fleet.stimuli import Adopted, Deployment
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import ActionLine, AnyLine, HoldLine, NoteLine
from vocab.states import ActionKind, ActionState

CHAT = Deployment(name="chat", replicas=2, min_ready=1)
ROOM = Limits(cordons=100, cordons_ratio=1.0, node_ratio=1.0, repairs=10)
NODES, GPUS = 2, 3
CODES = ("xid:48", "xid:79", "xid:95", "remap_failed", "remap_pending", "replica_stalled")
HARMFUL = frozenset(
    {
        ActionKind.DRAIN,
        ActionKind.STOP_REPLICA,
        ActionKind.RESTART_REPLICA,
        ActionKind.RESET_GPU,
        ActionKind.REBOOT_NODE,
        ActionKind.POWER_CYCLE,
        ActionKind.QUARANTINE,
    }
)

codes = st.sets(st.sampled_from(CODES))
policies = st.builds(
    lambda new, off: Settings(
        limits=ROOM,
        shadowed=dict.fromkeys(sorted(new), "it is new since the policy was adopted"),
        rules={code: Rule(shadow=True) for code in sorted(off)},
    ),
    codes,
    codes,
)
where = st.tuples(st.integers(1, NODES), st.integers(0, GPUS - 1))
moments = st.one_of(
    st.tuples(st.just("hit"), where, st.sampled_from(CODES)),
    st.tuples(st.just("mistake"), where, st.sampled_from(CODES)),
    st.tuples(st.just("close"), where, st.sampled_from(("right", "wrong"))),
    st.tuples(st.just("adopt"), where, policies),
    st.tuples(st.just("revert"), where, st.just("")),
    st.tuples(st.just("discard"), where, st.just("")),
    st.tuples(st.just("restart"), where, st.just("")),
    st.tuples(st.just("clear"), where, st.just("")),
)
plays = st.lists(st.tuples(moments, st.sampled_from((2, 6, 20, 130))), max_size=14)


class Shadows:
    """Which rules are in shadow, read from the stored lines and from what was adopted, not from the core."""

    def __init__(self, adopted: Settings) -> None:
        self.adopted = adopted
        self.demoted: set[str] = set()
        self.seen = 0

    def read(self, lines: list[AnyLine]) -> None:
        """No line since the last time is a harmful act of a rule in shadow."""
        for line in lines[self.seen :]:
            if isinstance(line, NoteLine):
                self._note(line)
            elif isinstance(line, HoldLine) and line.owner == "policy" and line.op == "placed":
                self._acts(line.rule, line)
            elif isinstance(line, ActionLine) and line.rule.startswith("catalogue/") and _is_done(line):
                self._acts(line.rule.removeprefix("catalogue/"), line)
        self.seen = len(lines)

    def _note(self, line: NoteLine) -> None:
        if line.code == "rule_demoted":
            self.demoted.add(line.rule or "")
        elif line.code in {"policy_adopted", "backlog_discarded"}:
            self.demoted.clear()

    def _acts(self, code: str | None, line: AnyLine) -> None:
        off = self.adopted.rules.get(code or "", Rule()).shadow
        assert code not in self.demoted, line
        assert code not in self.adopted.shadowed, line
        assert not off, line


def _is_done(line: ActionLine) -> bool:
    """Whether the line orders something harmful; a quarantine needs nobody's hands."""
    last = ActionState.DONE if line.of is ActionKind.QUARANTINE else ActionState.ORDERED
    return line.of in HARMFUL and line.state is last


def happen(world: World, shadows: Shadows, what: str, at: tuple[int, int], how: object) -> None:
    """One moment of a play."""
    node = world.nodes[f"n{at[0]}"]
    gpu = node.gpus[at[1]]
    if what in {"hit", "mistake"} and how == "replica_stalled":
        name = world.replica_on(gpu)
        if name is not None:
            node.complain(name, how, world.now, still_since=world.now)
    elif what in {"hit", "mistake"}:
        node.hit(gpu, str(how), world.now)
    if what == "mistake":
        world.run(4)
        world.ask("lift", gpu=gpu, reason="a false alarm", force=True)
        node.clear(gpu, world.now)
    elif what == "close":
        for incident in world.core.view().incidents:
            world.ask("close", incident=incident.id, verdict=str(how), reason="looked at it")
    elif what in {"adopt", "revert"}:
        world.settings = how if isinstance(how, Settings) else Settings(limits=ROOM)
        shadows.read(world.lines)
        shadows.adopted = world.settings
        world.tell(Adopted(settings=world.settings, words=what))
    elif what == "discard":
        world.ask("discard_backlog", reason="looked at it")
    elif what == "restart":
        world.restart()
    elif what == "clear":
        node.clear(gpu, world.now)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plays)
def test_a_rule_in_shadow_does_nothing_harmful(moves: list[tuple[tuple[str, tuple[int, int], object], int]]) -> None:
    world = World([Node(f"n{n + 1}", GPUS) for n in range(NODES)], [CHAT], Settings(limits=ROOM))
    shadows = Shadows(world.settings)
    world.run(12)
    for (what, at, how), seconds in moves:
        happen(world, shadows, what, at, how)
        world.run(seconds)
        shadows.read(world.lines)
    again = Core(world.settings)
    for line in world.lines:
        again.fold(line)
    folded, lived = again._fleet.ledger, world.core._fleet.ledger
    assert folded.demoted.keys() == lived.demoted.keys() == shadows.demoted
    assert (folded.verdicts, folded.forced, folded.trusted_at) == (lived.verdicts, lived.forced, lived.trusted_at)
    assert again.view().precision == world.core.view().precision
