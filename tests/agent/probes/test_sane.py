import pytest

from agent.probes.sane import clean
from tests.agent.made import uuid
from vocab.observations import GpuProcess, GpuSample
from vocab.readings import LinkReadings, Readings


def cleaned(**readings):
    return clean(GpuSample(at=0.0, gpu=uuid(0), readings=Readings(**readings)))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("sm_active_ratio", 140737488355328.0, "BLANK"),
        ("tensor_active_ratio", 140737488355330.0, "NOT_SUPPORTED"),
        ("nvlink_tx_bytes", 9223372036854775792, "BLANK"),
        ("nvlink_rx_bytes", 9223372036854775794, "NOT_SUPPORTED"),
        ("pcie_tx_bytes_per_s", 9223372036854775792.0, "BLANK"),
        ("memory_used_bytes", 2147483632, "BLANK"),
        ("remap_pending", 2147483635, "NOT_PERMISSIONED"),
        ("utilization_ratio", 42949672.95, "IMPLAUSIBLE"),
        ("utilization_ratio", 1310.72, "IMPLAUSIBLE"),
        ("utilization_ratio", 1.01, "IMPLAUSIBLE"),
        ("utilization_ratio", -0.01, "IMPLAUSIBLE"),
        ("temperature_c", 255.0, "IMPLAUSIBLE"),
        ("power_w", 4294967.295, "IMPLAUSIBLE"),
        ("memory_used_bytes", 2**64 - 1, "IMPLAUSIBLE"),
        ("clock_reasons", 2**64 - 1, "IMPLAUSIBLE"),
        ("clock_reasons", 10**30, "IMPLAUSIBLE"),
        ("pcie_replays", 2**32 - 1, "IMPLAUSIBLE"),
        ("ecc_uncorrectable", -1, "IMPLAUSIBLE"),
        ("performance_state", 32, "IMPLAUSIBLE"),
        ("pcie_width", 0, "IMPLAUSIBLE"),
    ],
)
def test_what_cannot_be_is_absent_with_its_reason(name, value, why):
    sample = cleaned(**{name: value})
    assert getattr(sample.readings, name) is None
    assert sample.errors == {name: why}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("utilization_ratio", 0.0),
        ("utilization_ratio", 1.0),
        ("power_w", 69.437),
        ("temperature_c", -5.0),
        ("margin_c", -3.0),
        ("ecc_correctable", 0),
        ("ecc_correctable", 3_000_000_000),  # a storm of days
        ("memory_used_bytes", 0),
        ("fan_ratio", 1.1),
    ],
)
def test_what_can_be_stays(name, value):
    sample = cleaned(**{name: value})
    assert getattr(sample.readings, name) == value
    assert sample.errors == {}


def test_more_used_than_there_is_cannot_be():
    assert cleaned(memory_used_bytes=2**37, memory_total_bytes=2**36).readings.memory_used_bytes is None


def test_links_instances_and_processes_are_cleaned_too():
    sample = clean(
        GpuSample(
            at=0.0,
            gpu=uuid(0),
            readings=Readings(power_w=80.0),
            links={"3": LinkReadings(state=1, replays=2**32 - 1)},
            instances={"1/0": Readings(graphics_active_ratio=140737488355329.0, memory_used_bytes=5)},
            processes=(GpuProcess(pid=1, used_bytes=2**64 - 1), GpuProcess(pid=2, used_bytes=7)),
        )
    )
    assert sample.links == {"3": LinkReadings(state=1)}
    assert sample.link_errors == {"3": {"replays": "IMPLAUSIBLE"}}
    assert sample.instances == {"1/0": Readings(memory_used_bytes=5)}
    assert [process.used_bytes for process in sample.processes] == [None, 7]


def test_a_good_sample_is_left_as_it_is():
    sample = GpuSample(at=0.0, gpu=uuid(0), readings=Readings(power_w=80.0), links={"0": LinkReadings(state=1)})
    assert clean(sample) is sample
