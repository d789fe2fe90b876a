import pytest

from agent.probes.probe import Clear, Finding
from agent.probes.thermal import ThermalProbe
from tests.agent.made import sample, scene
from vocab.events import Severity

HOT = {"temperature_c": 92.0, "slowdown_c": 87.0}
COOL = {"temperature_c": 60.0, "slowdown_c": 87.0}


def play(*masks, **readings):
    probe, node = ThermalProbe(), scene()
    return [
        v for t, mask in enumerate(masks) for v in probe.observe(sample(t, clock_reasons=mask, **readings), node, t)
    ]


@pytest.mark.parametrize("mask", [0x0, 0x1, 0x2, 0x4, 0x5, 0x100, 0x80, 0x88, 0xFFFFFFFFFFFFFFFF])
def test_what_is_not_heat_raises_nothing(mask):
    assert play(*[mask] * 6, **HOT) == []


@pytest.mark.parametrize(
    ("mask", "readings", "severity"),
    [
        (0x20, HOT, Severity.WARNING),
        (0x40, HOT, Severity.ERROR),
        (0x48, HOT, Severity.ERROR),
        (0x48, COOL, Severity.WARNING),
        (0x40, {}, Severity.WARNING),
    ],
)
def test_three_hot_polls_raise_it_once(mask, readings, severity):
    (found,) = play(*[mask] * 6, **readings)
    assert isinstance(found, Finding)
    assert found.severity is severity


def test_one_clear_poll_resets_the_streak():
    assert play(0x20, 0x20, 0x0, 0x20, 0x20) == []


def test_a_missing_poll_changes_nothing():
    assert len(play(0x20, None, 0x20, None, 0x20)) == 1


def test_it_gets_harsher_while_it_stands():
    first, second = play(0x20, 0x20, 0x20, 0x40, **HOT)
    assert (first.severity, second.severity) == (Severity.WARNING, Severity.ERROR)


def test_three_clear_polls_end_it():
    raised, ended = play(*[0x20] * 3, 0, 0, 0, 0)
    assert isinstance(raised, Finding)
    assert isinstance(ended, Clear)
