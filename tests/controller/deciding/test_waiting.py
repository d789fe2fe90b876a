"""What waits for a turn: a fault does not stand behind a fleet that joins."""

import pytest

from controller.core.fleet.stimuli import Asked
from controller.deciding.waiting import FEW, MOST_RECORDS, Waiting, wanted
from controller.several.submission import Submission
from tests.controller.house import batch, event, facts
from vocab.errors import Unreachable
from vocab.events import Severity


def joins(node: str) -> Submission:
    return Submission(batch=batch(node=node, facts=facts(node)))


def fault(node: str, number: int = 1) -> Submission:
    return Submission(batch=batch(event(number, node=node), node=node, facts=None))


async def test_faults_and_orders_come_before_what_merely_joins() -> None:
    waiting = Waiting()
    joining, failing, order = [joins(f"n{n}") for n in range(3)], fault("x"), Submission(stimuli=[Asked(do="pause")])
    for each in (*joining, failing, order):
        waiting.put(each)
    assert waiting.take(256, 500) == [failing, order, *joining]
    assert waiting.take(256, 500) == []


async def test_of_one_node_nothing_overtakes_what_came_before() -> None:
    waiting = Waiting()
    first, then, other = joins("n1"), fault("n1"), fault("n2")
    for each in (first, then, other):
        waiting.put(each)
    assert waiting.take(256, 500) == [other, first, then]
    again = fault("n1", 2)
    waiting.put(joins("n3"))
    waiting.put(again)
    assert waiting.take(1, 500) == [again]


async def test_what_a_node_says_after_its_fault_does_not_overtake_it_in_a_storm() -> None:
    waiting = Waiting()
    for number in range(10):
        waiting.put(fault(f"f{number}"))
    failing, then = fault("n1"), joins("n1")
    waiting.put(failing)
    waiting.put(then)
    taken = waiting.take(256, 500)
    assert taken.index(failing) < taken.index(then)


async def test_a_storm_of_faults_lets_others_through_too() -> None:
    waiting = Waiting()
    joining = joins("n0")
    waiting.put(joining)
    for number in range(100):
        waiting.put(fault(f"f{number}"))
    assert joining in waiting.take(8, 500)


async def test_a_spool_that_is_emptied_is_not_urgent_and_neither_is_a_mere_notice() -> None:
    waiting = Waiting()
    backlog = Submission(batch=batch(*(event(n, node="n1") for n in range(1, FEW + 2)), node="n1"))
    notice = Submission(batch=batch(event(1, node="n2", severity=Severity.INFO), node="n2"))
    failing = fault("n3")
    for each in (backlog, notice, failing):
        waiting.put(each)
    assert waiting.take(256, 500) == [failing, backlog, notice]


async def test_a_turn_takes_no_more_than_it_can_store_at_once() -> None:
    waiting = Waiting()
    for number in range(10):
        waiting.put(fault(f"n{number}"))
    assert len(waiting.take(4, 500)) == 4
    assert len(waiting.take(256, 3)) == 3
    assert len(waiting) == 3


async def test_more_reports_than_can_be_kept_are_not_taken_and_orders_are() -> None:
    waiting = Waiting()
    spool = Submission(batch=batch(*(event(number) for number in range(1, 501))))
    for _ in range(MOST_RECORDS // 500):
        waiting.put(spool)
    with pytest.raises(Unreachable, match="again"):
        waiting.put(joins("n2"))
    order = Submission(stimuli=[Asked(do="pause")])
    waiting.put(order)
    assert waiting.take(1, 500) == [order]
    waiting.take(1, 500)
    waiting.put(joins("n2"))


async def test_a_report_for_which_nobody_waits_any_more_is_left_out() -> None:
    waiting = Waiting()
    left, awaited = joins("n1"), joins("n2")
    for each in (left, awaited):
        waiting.put(each)
    left.stored.cancel()
    assert waiting.take(256, 500) == [awaited]
    assert len(waiting) == 0


async def test_a_report_whose_sender_has_gone_is_wanted_no_more() -> None:
    stays, gone = joins("n1"), joins("n2")
    gone.stored.cancel()
    assert wanted([stays, gone]) == [stays]
