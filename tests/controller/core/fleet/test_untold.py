"""Who may have to be told something new: not the whole fleet because a while is over."""

from controller.core.core import Core
from controller.core.fleet.ledger import FLEET, TOO_MUCH
from controller.core.fleet.stimuli import Asked, NodeReported, Replicas
from vocab.events import Severity
from vocab.lines import ConditionLine, NoteLine
from vocab.messages import NodeFacts
from vocab.states import ClearsOn

NOW = 1_796_000_000.0


def core_of(*names: str) -> Core:
    core = Core()
    for name in names:
        core.take(NodeReported(facts=NodeFacts(node=name, boot_id="b")), NOW)
        core.take(Replicas(node=name, statuses=()), NOW)
    core.tick(NOW)
    core.untold()
    return core


def test_what_is_due_for_the_fleet_is_no_news_for_each_node() -> None:
    core = core_of("a", "b")
    core._fleet.agenda.remind(NOW + 1.0, FLEET)
    assert core.tick(NOW + 1.0) == []
    assert core.untold() == {}


def test_a_pause_of_all_is_told_to_all() -> None:
    core = core_of("a", "b")
    assert core.take(Asked(do="pause", by="p", reason="r"), NOW + 1.0)
    core.tick(NOW + 1.0)
    assert core.untold() is None


def test_doubt_about_the_fleet_is_no_news_for_each_node() -> None:
    core = core_of("a", "b")
    doubt = ConditionLine(
        at=NOW,
        subject=FLEET,
        id="c-1",
        code=TOO_MUCH,
        state="open",
        severity=Severity.ERROR,
        since=NOW,
        last_at=NOW,
        clears_on=ClearsOn.PERSON,
    )
    core.fold(doubt)
    core.fold(NoteLine(at=NOW, subject=FLEET, code=TOO_MUCH, text="5 of 5 nodes"))
    assert core.untold() == {}
