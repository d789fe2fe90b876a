from agent.probes.probe import Clear, Finding
from agent.probes.remap import RemapProbe
from agent.probes.sane import clean
from tests.agent.made import sample, scene


def play(*flags):
    probe = RemapProbe()
    return [v for t, flag in enumerate(flags) for v in probe.observe(clean(sample(t, remap_pending=flag)), scene(), t)]


def test_a_pending_remap_is_said_once_and_ends_with_its_flag():
    raised, ended = play(0, 1, 1, None, 1, 0, 0)
    assert isinstance(raised, Finding)
    assert isinstance(ended, Clear)


def test_a_second_rise_is_another_finding():
    first, _, second = play(1, 0, 1)
    assert first.first != second.first


def test_a_remap_that_failed_is_found_beside_it():
    probe = RemapProbe()
    found = probe.observe(sample(0, remap_pending=1, remap_failed=1), scene(), 0)
    assert [f.code for f in found] == ["remap_pending", "remap_failed"]


def test_blanks_are_no_flags():
    assert play(2147483632, None) == []


def test_an_sram_over_its_limit_asks_for_a_person():
    (found,) = RemapProbe().observe(sample(0, sram_threshold_exceeded=1, sram_uncorrectable_lifetime=9), scene(), 0)
    assert found.code == "sram_threshold"
    assert found.evidence[0].readings == {"sram_threshold_exceeded": 1, "sram_uncorrectable_lifetime": 9}
