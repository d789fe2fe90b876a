"""A few hours of the month of 2,000 GPUs that tests/bench/month.py plays whole."""

from tests.bench.month import WEEKLY, Month, play

MONTH = Month(days=30, seed=1)


def around(cause: str) -> list[tuple[int, int]]:
    """The first window in which this happens."""
    at = next(change.at for change in MONTH.changes if change.cause == cause)
    return [window for window in MONTH.windows() if window[0] <= at < window[1]]


def test_a_gpu_that_falls_off_the_bus_and_a_switch_that_takes_four_nodes_wake_nobody(tmp_path):
    assert play(MONTH, tmp_path, around("off the bus") + around(WEEKLY[0])) == []


def test_a_roll_out_that_blinds_twenty_nodes_is_one_page(tmp_path):
    [page] = play(MONTH, tmp_path, around(WEEKLY[1]))
    assert page.alert == "CorralNodesBlind"
    assert page.needed
