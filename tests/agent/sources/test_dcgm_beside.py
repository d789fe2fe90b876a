"""DCGM beside NVML: it is asked for what NVML does not give, and completes NVML's samples. On a virtual clock."""

from pathlib import Path

import pytest

from agent.sources.dcgm.sight import DcgmSettings
from agent.sources.dcgm.source import ALONE_AFTER_S, NEED_AFTER_S, DcgmSource
from agent.sources.dcgm_fields import NAMES
from agent.sources.frames import Observed, Opened
from vocab.clock import VirtualClock
from vocab.observations import AnyObservation, GpuIdentity, GpuSample, NodeSeen
from vocab.readings import Readings

GPU = "GPU-1"
COUNTERS = frozenset({"sm_active_ratio", "tensor_active_ratio"})


class Beside:
    """A source that is fed by hand."""

    def __init__(self, run_dir: Path) -> None:
        self.clock = VirtualClock(1000.0)
        self.source = DcgmSource("n", DcgmSettings(), run_dir, self.clock)
        self.emitted: list[AnyObservation] = []
        self.source._emit = self.emitted.append
        self.source.take(Opened("570.1", "4.2.3", 1, ()))
        self.emitted.clear()

    def nvml(self, readings: Readings | None, errors: dict[str, str] | None = None) -> GpuSample:
        error = None if readings else "GPU_IS_LOST"
        sample = GpuSample(at=1.0, gpu=GPU, readings=readings, errors=errors or {}, error=error, source="nvml")
        completed = self.source.complete(sample)
        assert isinstance(completed, GpuSample)
        return completed

    def dcgm(self, readings: Readings, errors: dict[str, str] | None = None) -> None:
        sample = GpuSample(at=1.0, gpu=GPU, readings=readings, errors=errors or {}, source="dcgm")
        self.source.take(Observed(sample))


@pytest.fixture
def beside(tmp_path: Path) -> Beside:
    return Beside(tmp_path)


def all_but(*left_out: str) -> Readings:
    return Readings(**dict.fromkeys(NAMES - set(left_out), 1))


def test_nothing_is_needed_before_nvml_had_its_time(beside: Beside) -> None:
    assert beside.source.needs() == frozenset()


def test_what_nvml_gives_is_never_asked_of_dcgm(beside: Beside) -> None:
    for _ in range(int(NEED_AFTER_S) + 10):
        beside.clock.advance(1)
        beside.nvml(all_but(*COUNTERS))
    assert beside.source.needs() == COUNTERS


def test_a_reading_that_one_gpu_gives_is_nvmls(beside: Beside) -> None:
    beside.clock.advance(NEED_AFTER_S + 1)
    beside.nvml(Readings(power_w=1.0))
    assert beside.source.needs() == NAMES - {"power_w"}


def test_while_nvml_is_down_everything_is_needed_and_no_longer_once_it_is_back(beside: Beside) -> None:
    beside.clock.advance(NEED_AFTER_S + 1)
    assert beside.source.needs() == NAMES
    beside.nvml(all_but())
    assert beside.source.needs() == frozenset()


def test_a_sample_gets_what_it_lacks_and_keeps_what_it_has(beside: Beside) -> None:
    beside.clock.advance(NEED_AFTER_S + 1)
    beside.dcgm(Readings(power_w=9.0, sm_active_ratio=0.5))
    sample = beside.nvml(Readings(power_w=1.0), {"sm_active_ratio": "NO_PERMISSION", "margin_c": "UNKNOWN"})
    assert sample.readings == Readings(power_w=1.0, sm_active_ratio=0.5)
    assert sample.errors == {"margin_c": "UNKNOWN"}
    assert sample.source == "nvml"


def test_between_two_slow_reads_of_nvml_dcgm_puts_nothing(beside: Beside) -> None:
    beside.nvml(Readings(ecc_uncorrectable=0))
    beside.dcgm(Readings(ecc_uncorrectable=7))
    assert beside.nvml(Readings(power_w=1.0)).readings == Readings(power_w=1.0)


def test_why_dcgm_has_no_value_is_told_where_nvml_says_nothing(beside: Beside) -> None:
    beside.clock.advance(NEED_AFTER_S + 1)
    beside.dcgm(Readings(), {"sm_active_ratio": "PROFILING_LIBRARY_ERROR", "margin_c": "BLANK"})
    sample = beside.nvml(Readings(power_w=1.0), {"margin_c": "UNKNOWN"})
    assert sample.errors == {"sm_active_ratio": "PROFILING_LIBRARY_ERROR", "margin_c": "UNKNOWN"}


def test_an_old_value_completes_nothing(beside: Beside) -> None:
    beside.clock.advance(NEED_AFTER_S + 1)
    beside.dcgm(Readings(sm_active_ratio=0.5))
    beside.clock.advance(6)
    assert beside.nvml(Readings(power_w=1.0)).readings == Readings(power_w=1.0)


def test_a_gpu_that_nvml_calls_lost_stays_lost(beside: Beside) -> None:
    beside.dcgm(Readings(power_w=9.0))
    lost = beside.nvml(None)
    assert (lost.error, lost.readings) == ("GPU_IS_LOST", None)


def test_dcgm_speaks_for_itself_only_while_nvml_is_silent(beside: Beside) -> None:
    beside.dcgm(Readings(power_w=9.0))
    assert beside.emitted == []
    beside.clock.advance(ALONE_AFTER_S + 1)
    beside.dcgm(Readings())
    assert beside.emitted == []  # nothing was read yet
    beside.dcgm(Readings(power_w=9.0))
    (sample,) = beside.emitted
    assert isinstance(sample, GpuSample)
    assert sample.source == "dcgm"
    beside.nvml(None)
    beside.dcgm(Readings(power_w=9.0))
    assert len(beside.emitted) == 1


def test_an_inventory_without_gpus_gets_dcgms_while_it_is_connected(beside: Beside) -> None:
    empty = NodeSeen(at=1.0, boot_id="b", driver=None)
    gpu = GpuIdentity(uuid=GPU, index=0, pci="0000:1b:00")
    beside.source.take(Opened("580.105.08", "4.6.0", 1, (gpu,)))
    assert beside.source.complete(empty) == empty  # the connection is gone
    beside.source.keeper.live = True
    completed = beside.source.complete(empty)
    assert isinstance(completed, NodeSeen)
    assert (completed.gpus, completed.driver, completed.expected_gpus) == ((gpu,), "580.105.08", 1)
    known = NodeSeen(at=1.0, boot_id="b", gpus=(gpu, gpu), driver=None)
    assert beside.source.complete(known) == known  # NVML's own, as last known


def test_what_nvml_gives_is_no_matter_until_there_is_a_dcgm(tmp_path: Path) -> None:
    alone = Beside(tmp_path)
    alone.source.ended("ENGINE_NOT_FOUND")
    for _ in range(300):
        alone.clock.advance(1)
        alone.nvml(all_but(*COUNTERS))
    alone.source.take(Opened("570.1", "4.2.3", 1, ()))
    assert alone.source.needs() == frozenset()
    for _ in range(int(NEED_AFTER_S) + 2):
        alone.clock.advance(1)
        alone.nvml(all_but(*COUNTERS))
    assert alone.source.needs() == COUNTERS


def test_a_dcgm_that_comes_while_nvml_is_silent_is_needed_for_all(tmp_path: Path) -> None:
    alone = Beside(tmp_path)
    alone.source.ended("ENGINE_NOT_FOUND")
    alone.clock.advance(300)
    alone.source.take(Opened("570.1", "4.2.3", 1, ()))
    assert alone.source.needs() == NAMES


def test_a_connection_that_is_made_anew_knows_at_once_what_is_needed(beside: Beside) -> None:
    beside.clock.advance(NEED_AFTER_S + 1)
    beside.nvml(all_but(*COUNTERS))
    beside.source.ended("CONNECTION_NOT_VALID")
    beside.clock.advance(5)
    beside.nvml(all_but(*COUNTERS))
    beside.source.take(Opened("570.1", "4.2.3", 1, ()))
    assert beside.source.needs() == COUNTERS
