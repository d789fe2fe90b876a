"""What a GPU does, by its counters: the figures of real boards, and the trap that utilization is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocab.activity import Doing, activity
from vocab.readings import Readings


def of(**readings: float) -> str:
    return str(activity(Readings(**readings)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("readings", "said"),
    [
        ({"utilization_ratio": 1.0, "sm_active_ratio": 0.85, "dram_active_ratio": 0.83, "tensor_active_ratio": 0.15},
         "memory-bound at 83% of the bandwidth roof"),
        ({"utilization_ratio": 1.0, "sm_active_ratio": 0.95, "dram_active_ratio": 0.45, "tensor_active_ratio": 0.62},
         "compute-bound at 62%"),
        ({"utilization_ratio": 1.0, "sm_active_ratio": 0.9, "dram_active_ratio": 0.2}, "compute-bound at 90%"),
        ({"utilization_ratio": 1.0, "sm_active_ratio": 0.2, "dram_active_ratio": 0.1, "power_w": 250.0,
          "power_limit_w": 700.0}, "launch-bound: 20% of the chip used"),
        ({"utilization_ratio": 0.4, "sm_active_ratio": 0.3, "dram_active_ratio": 0.2},
         "starved: a kernel runs 40% of the time"),
        ({"utilization_ratio": 0.01, "sm_active_ratio": 0.0, "dram_active_ratio": 0.0}, "idle"),
        ({"utilization_ratio": 1.0, "sm_active_ratio": 0.05, "dram_active_ratio": 0.0, "power_w": 72.0,
          "power_limit_w": 700.0}, "hung"),
        ({"utilization_ratio": 1.0, "clock_reasons": 0x40, "sm_active_ratio": 0.9, "dram_active_ratio": 0.8},
         "throttled by heat"),
        ({"utilization_ratio": 0.9, "clock_reasons": 0x88}, "throttled by power brake"),
        ({"utilization_ratio": 0.9, "clock_reasons": 0x8}, "throttled by hardware slowdown"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_one_plain_word(readings: dict[str, float], said: str) -> None:
    assert of(**readings) == said


def test_the_power_limit_under_full_load_is_no_fault() -> None:
    assert of(utilization_ratio=1.0, clock_reasons=0x4, sm_active_ratio=0.9, dram_active_ratio=0.8).startswith("memory")


def test_an_idle_gpu_is_not_throttled_whatever_its_clocks_are() -> None:
    assert of(utilization_ratio=0.0, clock_reasons=0x20) == "idle"


def test_a_mask_that_was_not_read_slows_nothing() -> None:
    assert of(utilization_ratio=1.0, clock_reasons=2**64 - 1, sm_active_ratio=0.9, dram_active_ratio=0.1) != "throttled"


@pytest.mark.parametrize("missing", ["utilization_ratio", "sm_active_ratio", "dram_active_ratio"])
def test_without_a_counter_nothing_is_said(missing: str) -> None:
    known = {"utilization_ratio": 1.0, "sm_active_ratio": 0.9, "dram_active_ratio": 0.8}
    assert activity(Readings(**{name: value for name, value in known.items() if name != missing})) is None
    assert activity(None) is None


_ratios, _watts = st.none() | st.floats(0, 1), st.none() | st.floats(0, 800)
_readings = st.builds(
    Readings,
    utilization_ratio=_ratios,
    sm_active_ratio=_ratios,
    dram_active_ratio=_ratios,
    tensor_active_ratio=_ratios,
    power_w=_watts,
    power_limit_w=_watts,
    clock_reasons=st.none() | st.integers(-1, 2**40),
)


@given(_readings)
def test_any_readings_have_one_word_or_none(readings: Readings) -> None:
    found = activity(readings)
    if found is not None:
        assert found.doing in Doing
        assert 0 <= found.share <= 1
        assert (found.doing is Doing.THROTTLED) == bool(found.by)
