from hypothesis import given
from hypothesis import strategies as st

from wire.backoff import delay_s


@given(st.integers(1, 10_000), st.text())
def test_a_delay_is_never_longer_than_the_cap_and_its_jitter(attempt: int, key: str) -> None:
    assert 0 < delay_s(attempt, key) <= 15.0 * 1.25


def test_equal_inputs_wait_equally_and_different_keys_spread() -> None:
    assert delay_s(3, "node-1") == delay_s(3, "node-1")
    assert len({delay_s(3, f"node-{number}") for number in range(50)}) > 40
