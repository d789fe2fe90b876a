from agent.whole import joined
from tests.agent.made import sample
from vocab.observations import GpuProcess, GpuSample
from vocab.readings import LinkReadings, Readings


def wide(**more):
    read = sample(1.0, 0, temperature_c=30.0, ecc_correctable=4)
    return GpuSample(
        at=read.at, gpu=read.gpu, readings=read.readings, links={"0": LinkReadings(state=1)},
        processes=(GpuProcess(pid=7),), **more,
    )  # fmt: skip


def test_what_was_not_asked_is_as_it_was():
    whole = joined(wide(), sample(2.0, 0, temperature_c=31.0))
    assert whole.readings == Readings(temperature_c=31.0, ecc_correctable=4)
    assert (whole.at, set(whole.links), whole.processes) == (2.0, {"0"}, (GpuProcess(pid=7),))


def test_what_was_asked_and_failed_is_unknown():
    failed = GpuSample(
        at=2.0, readings=Readings(power_w=1.0), errors={"ecc_correctable": "UNKNOWN", "links": "UNKNOWN"}
    )
    whole = joined(wide(), failed)
    assert whole.readings.ecc_correctable is None
    assert whole.links == {}
    assert whole.readings.temperature_c == 30.0


def test_an_error_stands_until_the_reading_is_asked_again():
    whole = joined(wide(errors={"fan_ratio": "UNKNOWN"}), sample(2.0, 0, power_w=1.0))
    assert whole.errors == {"fan_ratio": "UNKNOWN"}
    assert joined(wide(errors={"power_w": "UNKNOWN"}), sample(2.0, 0, power_w=1.0)).errors == {}


def test_a_failed_read_leaves_nothing():
    lost = sample(2.0, 0, error="GPU_IS_LOST")
    assert joined(wide(), lost) is lost


def test_the_first_sample_is_all_that_is_known():
    first = sample(1.0, 0, power_w=1.0)
    assert joined(None, first) is first
