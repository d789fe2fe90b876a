from agent.probes.ecc import RATE, UNCORRECTABLE, EccProbe
from tests.agent.made import sample, scene, uuid
from vocab.events import Severity


def play(counts, name="ecc_uncorrectable", probe=None, step=1.0):
    probe = probe or EccProbe()
    return [v for t, n in enumerate(counts) for v in probe.observe(sample(t * step, **{name: n}), scene(), t * step)]


def test_growth_is_an_event_and_standing_still_is_none():
    found = play([0, 0, 2, 2, 3])
    assert [(f.code, f.fields["grown"]) for f in found] == [(UNCORRECTABLE, 2), (UNCORRECTABLE, 1)]


def test_errors_that_were_there_before_the_first_look_count():
    (found,) = play([4])
    assert found.fields == {"grown": 4, "since_reset": 4}


def test_a_fall_is_a_new_start_and_never_negative():
    found = play([5, 0, 5])
    assert [f.fields["grown"] for f in found] == [5, 5]
    assert found[0].first != found[1].first


def test_the_same_value_after_a_reset_is_another_event():
    probe = EccProbe()
    (before,) = play([1], probe=probe)
    probe.forget(uuid(0))
    (after,) = play([1], probe=probe)
    assert before.first != after.first


def test_blanks_are_not_counts():
    assert play([0, 2147483632, 9223372036854775794, 2**64 - 1, -1, None, 0]) == []


def test_a_storm_of_corrected_errors_under_load_is_an_error_after_three_windows():
    found = play([0, 0, 278820, 557640, 836460, None, 2955300], "ecc_correctable", step=60.0)
    assert [(f.code, f.severity) for f in found] == [(RATE, Severity.ERROR)]
    assert found[0].fields["per_s"] == 4647.0


def test_values_that_are_repeated_between_slow_reads_are_one_window():
    counts = [n for n in (0, 200, 400, 600, 800) for _ in range(10)]  # 20 a second, read every 10 s
    found = play(counts, "ecc_correctable")
    assert [f.severity for f in found] == [Severity.WARNING]


def test_a_few_corrected_errors_are_nothing():
    assert play([0, 3, 3, 9, 10, 10], "ecc_correctable", step=10.0) == []


def test_a_rate_that_stops_clears_nothing_by_itself():
    found = play([0, 6000, 12000, 18000, *[18000] * 20], "ecc_correctable", step=10.0)
    assert len(found) == 1
