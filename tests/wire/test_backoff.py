from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from wire.backoff import delay_s


@given(st.integers(1, 10_000), st.text())
def test_a_delay_is_never_longer_than_the_cap(attempt: int, key: str) -> None:
    assert 0 < delay_s(attempt, key) <= 15.0


def test_equal_inputs_wait_equally_and_different_keys_spread() -> None:
    assert delay_s(3, "node-1") == delay_s(3, "node-1")
    assert len({delay_s(3, f"node-{number}") for number in range(50)}) > 40


def test_at_the_cap_delays_are_spread_over_its_upper_half() -> None:
    delays = [delay_s(20, f"node-{number}", most_s=300.0) for number in range(500)]
    assert 150.0 <= min(delays) < 155.0
    assert 295.0 < max(delays) <= 300.0


def test_the_first_retry_is_spread_as_well() -> None:
    assert len({round(delay_s(1, f"node-{number}", first_s=1.0), 2) for number in range(500)}) > 40


def test_after_a_long_outage_a_fleet_comes_back_spread_out() -> None:
    back = [_first_try_after(1680.0, f"node-{number}") for number in range(500)]
    by_second, by_ten = Counter(int(at) for at in back), Counter(int(at / 10) for at in back)
    assert max(by_second.values()) <= 0.05 * 500
    assert max(by_ten.values()) < 3 * 500 / len(
        by_ten
    )  # of single seconds, with two agents each, chance alone makes more


def _first_try_after(outage_s: float, key: str) -> float:
    """When an agent that lost its controller at 0 tries for the first time once that is back."""
    at, attempt = 0.0, 0
    while at < outage_s:
        attempt += 1
        at += delay_s(attempt, key, first_s=1.0, most_s=300.0)
    return at
