"""Ports that go up and down, where their fall is counted and where only the state is read."""

import pytest

from tests.agent.judge.test_judge import Bench
from tests.agent.made import NODE, events
from vocab.observations import HostSample


def port(at, state, **counters):
    return HostSample(at=at, node=NODE, devices={"mlx5_0": {"state": state, **counters}})


def flaps(step_s, **counters):
    bench, items = Bench(), []
    for n in range(6):
        counted = dict.fromkeys(counters, n)
        items += bench.see(port(n * step_s, 0, **counted), port((n + 0.5) * step_s, 1, **counted))
    return events(items + bench.at(10_000.0))


@pytest.mark.parametrize("counters", [{}, {"link_downed": 0}])
def test_a_port_that_falls_again_and_again_flaps_whoever_counts(counters):
    assert "warning" in {event.severity for event in flaps(15.0, **counters) if event.code == "nic_flap"}


def test_without_a_counter_a_single_fall_is_told_once():
    bench = Bench()
    found = events(bench.see(port(1.0, 1), port(10.0, 0)) + bench.at(1_000.0))
    assert [event.code for event in found] == ["nic_down"]


def test_a_fall_whose_counter_is_read_later_is_one_fall():
    looks = [port(n * 5.0, 0 if n % 2 else 1, **({} if n % 2 else {"link_downed": n // 2})) for n in range(5)]
    found = [event for event in events(Bench().see(*looks)) if event.code == "nic_flap"]
    assert [(event.severity, event.count) for event in found] == [("info", 1), ("info", 2)]


def test_a_counter_that_could_not_be_read_is_none():
    found = events(Bench().see(port(1.0, 1, link_downed=None), port(2.0, 0, link_downed=None)))
    assert [event.code for event in found] == ["nic_down"]


def test_falls_that_are_far_apart_are_no_flapping():
    assert {event.code for event in flaps(400.0)} == {"nic_down"}
