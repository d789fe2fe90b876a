from agent.probes.power import PowerProbe
from agent.probes.probe import Clear, Finding
from tests.agent.made import sample, scene


def play(probe, *masks, start=0.0):
    return [
        v
        for t, mask in enumerate(masks)
        for v in probe.observe(sample(start + t, clock_reasons=mask), scene(), start + t)
    ]


def test_three_asserted_samples_raise_it_and_missing_ones_do_not_count():
    (found,) = play(PowerProbe(), 0x80, None, 0x88, None, 0x80, 0x80)
    assert isinstance(found, Finding)
    assert found.code == "power_brake"


def test_it_ends_five_minutes_after_the_last_asserted_sample():
    probe = PowerProbe()
    play(probe, 0x80, 0x80, 0x80, 0)
    assert probe.next_deadline() == 302.0
    assert probe.tick(scene(), 301.9) == []
    (ended,) = probe.tick(scene(), 302.0)
    assert isinstance(ended, Clear)
    assert probe.next_deadline() is None


def test_it_does_not_end_while_nothing_is_read():
    probe = PowerProbe()
    play(probe, 0x80, 0x80, 0x80, None, None)
    assert probe.next_deadline() is None
    assert probe.tick(scene(), 10_000.0) == []
