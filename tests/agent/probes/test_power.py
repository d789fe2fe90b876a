from agent.probes.overdraw import OverdrawProbe
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


def drawn(*pairs):
    probe = OverdrawProbe()
    made = [sample(float(at), 0, power_w=watts, power_limit_w=700.0) for at, watts in pairs]
    return [type(v).__name__ for one in made for v in probe.observe(one, scene(), one.at)]


def test_power_over_its_limit_counts_once_it_has_lasted_for_two_minutes():
    over = [(at, 800.0) for at in range(0, 121, 10)]
    assert drawn(*over) == ["Finding"]
    assert drawn(*over, *((at, 650.0) for at in range(130, 200, 10))) == ["Finding", "Clear"]


def test_peaks_and_what_a_sensor_reads_too_much_are_within_the_limit():
    assert drawn(*((at, 800.0 if at % 60 else 650.0) for at in range(0, 600, 10))) == []
    assert drawn(*((at, 735.0) for at in range(0, 600, 10))) == []
    probe = OverdrawProbe()
    assert list(probe.observe(sample(0.0, 0, power_w=900.0), scene(), 0.0)) == []
