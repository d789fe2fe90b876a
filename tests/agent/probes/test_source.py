import pytest

from agent.probes.probe import Clear
from agent.probes.source import SourceProbe
from tests.agent.made import scene, source


def test_a_source_is_unreachable_after_a_minute_and_not_before():
    probe, node = SourceProbe(), scene()
    assert list(probe.observe(source(0.0, "down", error="TIMEOUT"), node, 0.0)) == []
    assert list(probe.observe(source(30.0, "down"), node, 30.0)) == []
    assert probe.next_deadline() == 60.0
    assert probe.tick(node, 59.9) == []
    (found,) = probe.tick(node, 60.0)
    assert found.code == "monitor_unreachable"
    assert found.gpu is None
    assert probe.tick(node, 90.0) == []


def test_the_first_up_ends_it_and_one_that_was_not_said_ends_silently():
    probe, node = SourceProbe(), scene()
    probe.observe(source(0.0, "down"), node, 0.0)
    assert list(probe.observe(source(10.0, "up"), node, 10.0)) == []
    probe.observe(source(20.0, "down"), node, 20.0)
    probe.tick(node, 80.0)
    (ended,) = probe.observe(source(90.0, "up"), node, 90.0)
    assert isinstance(ended, Clear)


def test_after_a_boot_it_gets_five_minutes():
    probe, node = SourceProbe(), scene(boot_at=0.0)
    probe.observe(source(10.0, "down"), node, 10.0)
    assert probe.next_deadline() == 300.0


def test_a_node_that_says_it_is_booting_raises_nothing():
    probe, node = SourceProbe(), scene(booting=True)
    probe.observe(source(0.0, "down"), node, 0.0)
    assert probe.tick(node, 60.0) == []
    assert probe.next_deadline() == 120.0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("EPERM: /dev/kmsg may not be read", "probe_permission"),
        ("ENOENT: /dev/kmsg does not exist", "probe_permission"),
        ("NO_PERMISSION: the agent's user", "probe_permission"),
        ("DRIVER_NOT_LOADED: run modprobe", "driver_not_loaded"),
    ],
)
def test_what_waiting_would_not_change_is_said_at_once_and_once(error, code):
    probe, node = SourceProbe(), scene()
    (found,) = probe.observe(source(0.0, "down", error=error), node, 0.0)
    assert found.code == code
    assert error.partition(":")[0] in found.text
    assert list(probe.observe(source(1.0, "down", error=error), node, 1.0)) == []
    assert probe.next_deadline() is None
