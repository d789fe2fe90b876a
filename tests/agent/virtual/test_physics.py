"""Couplings of the board: work, power, heat, clocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.virtual.boards import H100
from agent.virtual.physics import (
    HW_POWER_BRAKE,
    HW_SLOWDOWN,
    HW_THERMAL,
    IDLE,
    SW_POWER_CAP,
    SW_THERMAL,
    Load,
    Upset,
    Vitals,
    at_rest,
    step,
)

BURN = Load(utilization=1.0, sm_active=1.0, dram=0.11, contexts=1)
ALL_OUT = Load(utilization=1.0, sm_active=1.0, tensor=1.0, dram=0.9, contexts=1)
DECODE = Load(utilization=0.98, sm_active=0.3, dram=0.7, contexts=1)
FINE = Upset()


def after(seconds: int, load: Load, upset: Upset = FINE, was: Vitals | None = None) -> Vitals:
    vitals = was or at_rest(H100)
    for _ in range(seconds):
        vitals = step(H100, vitals, load, upset, 1.0)
    return vitals


def test_an_idle_board_stays_where_it_is() -> None:
    vitals = after(600, Load())
    assert vitals.power_w == pytest.approx(H100.power_idle_w)
    assert vitals.core_c == pytest.approx(at_rest(H100).core_c)
    assert (vitals.clock_reasons, vitals.sm_mhz) == (IDLE, H100.sm_clock_idle_mhz)


def test_a_burn_in_settles_at_the_figures_that_are_reported_of_the_board() -> None:
    vitals = after(300, BURN)
    assert vitals.power_w == pytest.approx(629, abs=15)
    assert vitals.core_c == pytest.approx(59, abs=3)
    assert vitals.memory_c == pytest.approx(55, abs=2)
    assert (vitals.sm_mhz, vitals.clock_reasons) == (H100.sm_clock_max_mhz, 0)


def test_heat_follows_power_and_needs_time() -> None:
    second, minute = after(1, BURN), after(60, BURN)
    assert second.power_w > 500
    assert second.core_c < minute.core_c - 10


def test_the_power_limit_holds_and_is_paid_for_in_clocks() -> None:
    vitals = after(60, ALL_OUT)
    assert vitals.power_w <= H100.power_limit_w
    assert vitals.clock_reasons == SW_POWER_CAP
    assert H100.sm_clock_max_mhz / 2 < vitals.sm_mhz < H100.sm_clock_max_mhz
    assert vitals.power_violation_ns == 60_000_000_000


def test_a_context_alone_keeps_the_clocks_up_and_counts_as_idle() -> None:
    vitals = after(60, Load(contexts=1))
    assert (vitals.sm_mhz, vitals.clock_reasons) == (H100.sm_clock_max_mhz, IDLE)
    assert 100 < vitals.power_w < 130


@pytest.mark.parametrize(("heat_c", "reasons"), [(86.0, 0), (87.0, SW_THERMAL), (89.0, HW_SLOWDOWN | HW_THERMAL)])
def test_heat_lowers_clocks_by_the_boards_thresholds(heat_c: float, reasons: int) -> None:
    vitals = after(2, DECODE, Upset(heat_c=heat_c))
    assert vitals.core_c == heat_c
    assert vitals.clock_reasons == reasons
    assert (vitals.sm_mhz < H100.sm_clock_max_mhz) == bool(reasons)


def test_a_power_brake_halves_the_clocks_and_the_counter_runs() -> None:
    vitals = after(5, DECODE, Upset(power_brake=True))
    assert vitals.clock_reasons == HW_SLOWDOWN | HW_POWER_BRAKE
    assert vitals.sm_mhz == H100.sm_clock_max_mhz // 2
    assert vitals.power_brake_ns == 5_000_000_000
    assert after(5, DECODE, FINE, vitals).power_brake_ns == 5_000_000_000


ratio = st.floats(0, 1)


@given(
    load=st.builds(Load, utilization=ratio, sm_active=ratio, dram=ratio, contexts=st.integers(0, 2)),
    steps=st.lists(st.floats(0, 100), min_size=1, max_size=20),
)
def test_no_load_leaves_the_boards_limits(load: Load, steps: list[float]) -> None:
    vitals = at_rest(H100)
    for dt in steps:
        was, vitals = vitals, step(H100, vitals, load, FINE, dt)
        assert H100.power_idle_w - 1e-6 <= vitals.power_w <= H100.power_limit_w
        assert H100.ambient_c <= vitals.core_c < H100.temperature_max_c
        assert vitals.energy_j >= was.energy_j
