import pytest

from agent.probes.pcie import PcieProbe
from agent.probes.replays import ReplaysProbe, limit_of
from tests.agent.made import sample, scene, uuid
from vocab.events import Severity
from vocab.readings import Readings


def play(probe, *samples):
    return [(type(v).__name__, v.code) for one in samples for v in probe.observe(one, scene(), one.at)]


def test_a_narrow_link_counts_at_once_also_when_idle():
    narrow = sample(1.0, 0, pcie_width=8, pcie_width_max=16, utilization_ratio=0.0, performance_state=8)
    assert play(PcieProbe(), narrow) == [("Finding", "pcie_width")]


def test_a_narrow_link_is_a_warning_while_idle_and_an_error_once_at_work():
    narrow = {"pcie_width": 8, "pcie_width_max": 16}
    idle = [sample(float(t), 0, **narrow, utilization_ratio=0.0, performance_state=8) for t in (1, 2)]
    busy = [sample(float(t), 0, **narrow, utilization_ratio=0.9, performance_state=2) for t in (3, 4)]
    probe = PcieProbe()
    found = [v for one in (*idle, *busy, idle[0]) for v in probe.observe(one, scene(), one.at)]
    assert [v.severity for v in found] == [Severity.WARNING, None]


def test_a_narrow_slot_is_no_narrow_link():
    assert play(PcieProbe(), sample(1.0, 0, pcie_width=8, pcie_width_max=8)) == []


def test_an_unknown_width_is_no_width():
    assert play(PcieProbe(), sample(1.0, 0, pcie_width_max=16), sample(2.0, 0, pcie_width=16)) == []


def test_a_slow_link_counts_only_under_load():
    idle = [sample(float(t), 0, pcie_generation=1, pcie_generation_max=5, performance_state=8) for t in range(10)]
    assert play(PcieProbe(), *idle) == []
    busy = [sample(float(t), 0, pcie_generation=1, pcie_generation_max=5, utilization_ratio=0.9) for t in range(10)]
    assert play(PcieProbe(), *busy) == [("Finding", "pcie_generation")]


def test_an_idle_sample_between_busy_ones_neither_counts_nor_ends_the_row():
    slow = {"pcie_generation": 3, "pcie_generation_max": 5}
    row = [sample(float(t), 0, **slow, performance_state=state) for t, state in enumerate((0, 8, 0, 8, 0))]
    assert play(PcieProbe(), *row) == [("Finding", "pcie_generation")]


@pytest.mark.parametrize(("generation", "limit"), [(1, 3), (2, 5), (3, 8), (4, 16), (5, 31), (6, 62)])
def test_the_limit_of_replays_grows_with_the_link(generation, limit):
    assert limit_of(Readings(pcie_generation=generation, pcie_width=16)) == limit


def test_replays_from_before_and_a_counter_that_falls_count_nothing():
    probe = ReplaysProbe()
    assert play(probe, *(sample(t * 60.0, 0, pcie_replays=n) for t, n in enumerate((900, 900, 5, 5, 5)))) == []
    probe.forget(uuid(0))
    assert play(probe, sample(600.0, 0, pcie_replays=800)) == []


def test_values_that_are_repeated_between_slow_reads_are_one_window():
    reads = [sample(float(t), 0, pcie_replays=t // 10) for t in range(130)]
    assert play(ReplaysProbe(), *reads) == []
