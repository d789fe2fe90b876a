import msgspec
import pytest

from agent.probes.advice import AdviceProbe
from agent.probes.board import BoardProbe
from agent.probes.degraded import DegradedProbe
from agent.probes.retired import RetiredProbe
from tests.agent.made import call, sample, scene, source, uuid
from vocab.catalogue.codes import row
from vocab.events import Recovery, Severity


def failed(at, error="UNKNOWN", name="fan_ratio", **readings):
    return msgspec.structs.replace(sample(float(at), 0, **({"power_w": 80.0} | readings)), errors={name: error})


def good(at):
    return sample(float(at), 0, power_w=80.0, fan_ratio=0.4)


def play(*samples, probe=None):
    probe = probe or DegradedProbe()
    return [v for one in samples for v in probe.observe(one, scene(), one.at)]


def test_five_failed_reads_in_a_row_are_said_and_three_good_ones_end_it():
    found = play(*(failed(t) for t in range(7)), good(7), good(8), good(9))
    assert [type(v).__name__ for v in found] == ["Finding", "Clear"]


def test_a_good_read_between_ends_the_row_and_a_missing_one_does_not():
    assert play(failed(0), failed(1), good(2), failed(3), failed(4), failed(5), failed(6)) == []
    absent = sample(2.5, 0, power_w=80.0)
    assert len(play(failed(0), failed(1), absent, failed(3), failed(4), failed(5))) == 1


@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "NOT_FOUND", "BLANK", "FUNCTION_NOT_FOUND", "NO_DATA"])
def test_what_is_never_there_is_no_failure(error):
    assert play(*(failed(t, error) for t in range(20))) == []


def test_what_may_not_be_read_is_told_once_as_information():
    (told,) = play(*(failed(t, "NO_PERMISSION") for t in range(20)))
    assert (told.code, told.severity) == ("probe_permission", Severity.INFO)


def test_a_whole_read_that_fails_again_and_again_is_a_degraded_probe():
    (found,) = play(*(sample(float(t), 0, error="TIMEOUT") for t in range(9)))
    assert found.fields["errors"] == {"all readings": "TIMEOUT"}


def test_a_source_that_lacks_a_field_says_so_once_and_again_when_it_lacks_another():
    lacking = [msgspec.structs.replace(source(t * 15.0, "degraded"), unsupported=("margin_c",)) for t in range(9)]
    more = msgspec.structs.replace(source(200.0, "degraded"), unsupported=("margin_c", "power_w"))
    assert [v.severity for v in play(*lacking, more)] == [Severity.INFO, Severity.INFO]


@pytest.mark.parametrize(
    ("action", "severity", "recovery"),
    [
        (1, Severity.CRITICAL, Recovery.RESET_GPU),
        (2, Severity.CRITICAL, Recovery.REBOOT_NODE),
        (3, Severity.ERROR, Recovery.INVESTIGATE),
        (4, Severity.ERROR, Recovery.DRAIN_AND_RESET),
        (5, Severity.ERROR, Recovery.INVESTIGATE),
        (6, Severity.CRITICAL, Recovery.RESET_GPU),
        (7, Severity.CRITICAL, Recovery.REBOOT_NODE),
        (99, Severity.WARNING, Recovery.INVESTIGATE),
    ],
)
def test_the_drivers_advice_is_ours(action, severity, recovery):
    (found,) = play(sample(0.0, 0, recovery_action=action), probe=AdviceProbe())
    assert (found.severity, found.recovery, found.fields["to"]) == (severity, recovery, action)


def test_advice_is_said_when_it_changes_and_ends_with_none():
    values = (0, 1, 1, None, 2, 0, 0)
    found = play(*(sample(float(t), 0, recovery_action=v) for t, v in enumerate(values)), probe=AdviceProbe())
    assert [type(v).__name__ for v in found] == ["Finding", "Finding", "Clear"]


def test_a_reset_that_is_required_is_said_once_whoever_says_it():
    probe = AdviceProbe()
    reads = (
        failed(0, "RESET_REQUIRED"),
        sample(1.0, 0, error="RESET_REQUIRED"),
        call(2.0, "failed", "x", 0, "RESET_REQUIRED"),
    )
    assert [v.code for v in play(*reads, probe=probe)] == ["gpu_requires_reset"]
    probe.forget(uuid(0))
    assert [v.code for v in play(failed(9, "GPU_REQUIRES_RESET"), probe=probe)] == ["gpu_requires_reset"]


def pages(at, single=0, double=0, pending=0):
    return sample(float(at), 0, retired_pages_sbe=single, retired_pages_dbe=double, retirement_pending=pending)


def retired(*samples):
    return [(v.severity, v.recovery) for v in play(*samples, probe=RetiredProbe())]


def test_pages_at_the_limit_need_a_person():
    assert retired(pages(0, 40, 22)) == []
    assert retired(pages(0, 40, 23), pages(1, 40, 23)) == [(Severity.ERROR, None)]


def test_many_double_bit_pages_count_only_if_some_are_new():
    day = 86_400
    assert retired(pages(0, 0, 20), pages(day, 0, 20)) == []
    assert retired(pages(0, 0, 15), pages(day, 0, 16)) == []
    assert retired(pages(0, 0, 15), pages(day, 0, 16), pages(2 * day, 0, 17)) == [(Severity.ERROR, None)]
    assert retired(pages(0, 0, 15), pages(day, 0, 16), pages(9 * day, 0, 17)) == []


def test_a_retirement_that_waits_asks_for_a_reset_at_a_quiet_time():
    assert retired(pages(0, 1, 1, pending=1)) == [(Severity.WARNING, Recovery.DRAIN_AND_RESET)]


@pytest.mark.parametrize(
    ("error", "code", "severity"),
    [
        ("CORRUPTED_INFOROM", "inforom_corrupted", Severity.WARNING),
        ("INSUFFICIENT_POWER", "gpu_init_failed", Severity.CRITICAL),
    ],
)
def test_what_the_library_says_is_wrong_with_the_board_is_told_as_that_and_is_a_persons(error, code, severity):
    whole = [sample(float(t), 0, error=error) for t in range(9)]
    one = [reading for t in range(9) for reading in (failed(t, error, "fan_ratio"), sample(t + 0.5, 0, power_w=80.0))]
    for samples in (whole, one):
        (found,) = play(*samples, probe=BoardProbe())
        assert (found.code, found.recovery) == (code, Recovery.CONTACT_SUPPORT)
        assert row(code).severity is severity
        assert play(*samples) == [], "it is no poor reading beside that"


def test_a_board_whose_store_can_be_read_again_is_sound_and_a_quick_sample_does_not_say_so():
    found = play(*(failed(t, "CORRUPTED_INFOROM") for t in range(3)), probe=(probe := BoardProbe()))
    assert len(found) == 1
    assert play(*(sample(float(t), 0, power_w=80.0) for t in range(3, 9)), probe=probe) == []
    assert [type(v).__name__ for v in play(good(9), good(10), good(11), probe=probe)] == ["Clear"]
