"""A lemon fails again and again while its peers do not; a score says why."""

from controller.core.fleet.lemons import DEFAULT, Lemon, Tally, lemons, signals

FAULTS = frozenset({"xid:79", "xid:48", "xid:119"})
DAY = 86_400
H200 = "NVIDIA H200"


def bad(gpu: str, days: int = 6) -> list[Tally]:
    faults = [Tally(gpu, day * DAY, "fault", ("xid:79", "xid:48", "xid:119")[day % 3], 1.0) for day in range(days)]
    return [*faults, Tally(gpu, 0, "hold", "xid:79", 5.0), Tally(gpu, 0, "repair", "reset_gpu", 3.0)]


def judge(tallies: list[Tally], cards: int = 800) -> list[Lemon]:
    found = signals(tallies, FAULTS)
    return lemons(found, dict.fromkeys(found, H200), {H200: cards})


def test_a_card_that_fails_in_several_ways_is_a_lemon_and_says_why() -> None:
    (found,) = judge(bad("GPU-a"))
    assert found.lemon
    assert found.score >= DEFAULT.score
    assert {signal.signal for signal in found.signals} == {"fault_days", "fault_codes", "holds", "repairs"}
    assert found.signals[0].text == "fault_days 6 in 28 days; 799 others of NVIDIA H200 have 0.00 on average"
    assert found.score == round(sum(signal.points for signal in found.signals), 2)


def test_what_befalls_all_cards_of_a_board_makes_no_lemon() -> None:
    assert judge([tally for number in range(20) for tally in bad(f"GPU-{number}")], cards=20) == []


def test_one_burst_is_one_day() -> None:
    assert judge([Tally("GPU-a", 0, "fault", "xid:48", 38_905.0)]) == []


def test_faults_of_programs_are_not_the_cards() -> None:
    assert judge([Tally("GPU-a", day * DAY, "fault", "xid:31", 50.0) for day in range(28)]) == []


def test_one_signal_alone_makes_no_lemon() -> None:
    (found,) = judge([Tally("GPU-a", 0, "hold", "operator", 400.0)])
    assert found.score >= DEFAULT.score
    assert not found.lemon


def test_the_worst_comes_first_and_ties_by_name() -> None:
    found = judge([*bad("GPU-c"), *bad("GPU-b"), *bad("GPU-a", days=12)])
    assert [each.gpu for each in found] == ["GPU-a", "GPU-b", "GPU-c"]


def test_a_card_without_peers_is_compared_with_what_is_usual() -> None:
    (found,) = lemons(signals(bad("GPU-a"), FAULTS), {}, {})
    assert found.lemon
    assert "no peers" in found.signals[0].text
