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
    ],
)
def test_what_waiting_would_not_change_is_said_at_once_and_once(error, code):
    probe, node = SourceProbe(), scene()
    (found,) = probe.observe(source(0.0, "down", error=error), node, 0.0)
    assert found.code == code
    assert error.partition(":")[0] in found.text
    assert list(probe.observe(source(1.0, "down", error=error), node, 1.0)) == []
    assert [v.code for v in probe.tick(node, 60.0)] == ["monitor_unreachable"]
    assert probe.next_deadline() is None


def test_a_driver_that_is_not_loaded_is_named_beside_it():
    probe, node = SourceProbe(), scene(driver=None)
    probe.observe(source(0.0, "down", error="DRIVER_NOT_LOADED: run modprobe"), node, 0.0)
    assert [v.code for v in probe.tick(node, 60.0)] == ["driver_not_loaded", "monitor_unreachable"]
    assert len(list(probe.observe(source(70.0, "up"), node, 70.0))) == 2


def test_a_driver_that_the_inventory_shows_is_loaded_whatever_a_source_says():
    probe, node = SourceProbe(), scene()
    probe.observe(source(0.0, "down", error="DRIVER_NOT_LOADED"), node, 0.0)
    assert [v.code for v in probe.tick(node, 60.0)] == ["monitor_unreachable"]
