"""What each node last said of its own link."""

import pytest

from controller.several.reports import Reports
from vocab.clock import SystemClock, VirtualClock
from vocab.messages import Batch


def test_the_more_nodes_there_are_the_less_often_each_needs_to_report() -> None:
    reports = Reports(SystemClock())
    assert reports.heartbeat_s == 2.0
    for number in range(5000):
        reports.take(Batch(node=f"n{number}", boot_id="b", at=1.0, session="s"))
    assert reports.heartbeat_s == 4.0
    for number in range(5000, 20_000):
        reports.take(Batch(node=f"n{number}", boot_id="b", at=1.0, session="s"))
    assert reports.heartbeat_s == 10.0


def test_how_far_a_nodes_clock_is_before_ours_is_that_of_its_last_report() -> None:
    clock = VirtualClock()
    reports = Reports(clock)
    for ahead in (9.0, -2.5):
        reports.take(Batch(node="n1", boot_id="b", at=clock.now() + ahead, session="s"))
    assert reports.ahead_s() == {"n1": pytest.approx(-2.5)}
