from itertools import pairwise

from agent.page import ROUND_S, Page
from tests.agent.made import sample, uuid

IDLE = {"temperature_c": 30.0, "power_w": 70.0, "utilization_ratio": 0.0, "sm_active_ratio": 0.0}


def read(page, at, **changes):
    return [page.take(uuid(i), sample(at, i, **(IDLE | changes))) for i in range(8)]


def test_the_first_report_has_every_gpu_and_then_nothing_that_did_not_change():
    page = Page()
    read(page, 1.0)
    first = page.report(1.0)
    assert len(first) == 8
    page.delivered(first)
    read(page, 2.0, power_w=71.0)
    assert page.report(2.0) == ()


def test_a_change_worth_seeing_goes_up():
    page = Page()
    read(page, 1.0)
    page.delivered(page.report(1.0))
    page.take(uuid(3), sample(2.0, 3, **(IDLE | {"utilization_ratio": 0.9})))
    assert [status.gpu for status in page.report(2.0)] == [uuid(3)]


def test_an_error_goes_up_at_once_and_so_does_its_end():
    page = Page()
    read(page, 1.0)
    page.delivered(page.report(1.0))
    assert page.take(uuid(0), sample(2.0, error="GPU_IS_LOST"))
    (status,) = page.report(2.0)
    assert (status.error, status.readings) == ("GPU_IS_LOST", None)
    page.delivered((status,))
    assert page.take(uuid(0), sample(3.0, **IDLE))


def test_every_gpu_of_an_idle_node_shows_signs_of_life_in_turn():
    page, sent = Page(), []
    read(page, 0.0)
    page.delivered(page.report(0.0))
    for beat in range(1, 40):
        now = beat * 2.0
        read(page, now)
        report = page.report(now)
        assert len(report) <= 1
        sent += [(now, status.gpu) for status in report]
        page.delivered(report)
    gaps = {}
    for gpu in map(uuid, range(8)):
        times = [0.0, *(at for at, name in sent if name == gpu)]
        gaps[gpu] = max(b - a for a, b in pairwise(times))
    assert max(gaps.values()) <= ROUND_S + 2.0
    assert len(sent) <= 20


def test_after_a_restart_of_the_controller_all_goes_up_anew():
    page = Page()
    read(page, 1.0)
    page.delivered(page.report(1.0))
    page.restart()
    assert len(page.report(1.0)) == 8


def test_gpus_that_are_gone_are_forgotten():
    page = Page()
    read(page, 1.0)
    page.keep(frozenset({uuid(1)}))
    assert [status.gpu for status in page.report(1.0)] == [uuid(1)]


def test_after_a_standstill_all_that_are_overdue_go_at_once():
    page = Page()
    read(page, 1.0)
    page.delivered(page.report(1.0))
    later = 1.0 + 2 * ROUND_S
    read(page, later)
    assert len(page.report(later)) == 8
