"""What each node last said of its own link."""

from controller.several.reports import Reports
from vocab.clock import SystemClock
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
