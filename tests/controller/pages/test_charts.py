"""Charts of what a recording says: gaps stay gaps, nothing is drawn that was never read."""

import msgspec

from controller.pages.charts import MOST_POINTS, charts
from controller.pages.recent import Place, points
from vocab.observations import GpuSample
from vocab.readings import Readings

PLACE = Place("GPU-a", 3, "0000:4c:00")


def watts(*pairs: tuple[float, float | None]) -> list[tuple[float, Readings]]:
    return [(at, Readings(power_w=value, power_limit_w=700.0)) for at, value in pairs]


def test_a_gap_breaks_the_line() -> None:
    (power,) = charts(watts((0.0, 300.0), (30.0, 310.0), (200.0, 320.0)), 0.0, 300.0)
    assert power.title == "Power"
    assert [part[0] for part in power.lines[0].path.replace("L", " L").replace("M", " M").split()[::2]] == [
        "M", "L", "M",
    ]  # fmt: skip
    assert power.told == "Power: power 320 W last, 300 to 320 W; limit 700 W"


def test_what_was_never_read_has_no_chart() -> None:
    assert charts(watts((0.0, None)), 0.0, 300.0) == []
    assert charts(watts((-500.0, 300.0)), 0.0, 300.0) == []


def test_a_long_recording_is_thinned_and_keeps_its_end() -> None:
    (power,) = charts(watts(*((float(at), float(at)) for at in range(3600))), 0.0, 3600.0)
    assert power.lines[0].path.count("L") <= MOST_POINTS + 1
    assert power.lines[0].now == 3599.0


def test_only_the_lines_of_the_gpu_are_taken_however_they_name_it() -> None:
    read = Readings(power_w=1.0)
    lines = [
        GpuSample(at=1.0, gpu="GPU-a", readings=read),
        GpuSample(at=2.0, gpu="GPU-b", readings=read),
        GpuSample(at=3.0, index=3, readings=read),
        GpuSample(at=4.0, index=31, readings=read),
        GpuSample(at=5.0, pci="0000:4c:00", readings=read),
        GpuSample(at=6.0, gpu="GPU-a", error="GPU_IS_LOST"),
    ]
    raw = b"\n".join([*(msgspec.json.encode(line) for line in lines), b'{"obs":"gpu","gpu":"GPU-a","at":7,"rea'])
    assert [at for at, _ in points(raw, PLACE)] == [1.0, 3.0, 5.0]
