"""What a GPU must show before it takes work, from one sample."""

import pytest

from agent.checks.baseline import baseline
from tests.agent.made import sample
from vocab.observations import GpuSample
from vocab.readings import LinkReadings

SOUND = {"ecc_uncorrectable": 0, "remap_pending": 0, "remap_failed": 0, "fabric_state": 3, "fabric_status": 0}


def results(seen: GpuSample) -> dict[str, str]:
    return {check.check: check.result for check in baseline(seen, 1.0)}


def with_links(seen: GpuSample, *states: int | None) -> GpuSample:
    links = {str(number): LinkReadings(state=state) for number, state in enumerate(states)}
    return GpuSample(at=seen.at, node=seen.node, gpu=seen.gpu, readings=seen.readings, links=links)


def test_a_sound_gpu_passes_everything():
    seen = with_links(sample(1.0, **SOUND), 1, 1)
    assert set(results(seen).values()) == {"pass"}


def test_what_a_board_does_not_tell_is_unknown_and_no_problem():
    assert results(sample(1.0)) == {
        "presence": "pass", "ecc": "unknown", "remap": "unknown", "fabric": "unknown", "links": "unknown"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reading", "check", "code"),
    [
        ({"ecc_uncorrectable": 1}, "ecc", "ecc_uncorrectable"),
        ({"sram_threshold_exceeded": 1}, "ecc", "sram_threshold"),
        ({"remap_pending": 1}, "remap", "remap_pending"),
        ({"remap_failed": 1}, "remap", "remap_failed"),
        ({"retirement_pending": 1}, "remap", "retired_pages"),
        ({"fabric_state": 2}, "fabric", "fabric_incomplete"),
        ({"fabric_status": 1}, "fabric", "fabric_incomplete"),
        ({"fabric_health_mask": 0b01_00_00}, "fabric", "fabric_unhealthy"),
    ],
)
def test_one_bad_reading_is_a_problem_and_comes_first(reading, check, code):
    found = baseline(sample(1.0, **(SOUND | reading)), 1.0)
    assert (found[0].check, found[0].result, found[0].code) == (check, "problem", code)
    assert [each.result for each in found].count("problem") == 1


def test_a_gpu_without_a_fabric_has_no_fabric_problem():
    assert results(sample(1.0, **(SOUND | {"fabric_state": 0})))["fabric"] == "unknown"


@pytest.mark.parametrize(("error", "result"), [("GPU_IS_LOST", "problem"), ("NO_PERMISSION", "unknown")])
def test_a_read_that_failed_for_the_reader_is_no_problem_of_the_gpu(error, result):
    assert results(sample(1.0, error=error)) == {"presence": result}


def test_links_that_are_down_are_for_the_judge_who_knows_which_were_up():
    assert results(with_links(sample(1.0, **SOUND), 1, 0))["links"] == "unknown"
