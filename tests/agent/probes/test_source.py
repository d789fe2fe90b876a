import pytest

from agent.probes.probe import Clear
from agent.probes.source import SourceProbe
from tests.agent.made import call, fallen, scene, source


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


def test_nvml_that_fails_at_its_start_while_the_kernel_is_silent_is_a_container_without_devices():
    probe, node = SourceProbe(), scene()
    (found,) = probe.observe(source(0.0, "down", error="UNKNOWN"), node, 0.0)
    assert (found.code, found.gpu) == ("probe_permission", None)


def test_nvml_that_fails_after_the_driver_has_spoken_is_merely_unreachable():
    probe, node = SourceProbe(), scene()
    probe.observe(fallen(0.0, 3), node, 0.0)
    assert list(probe.observe(source(1.0, "down", error="UNKNOWN"), node, 1.0)) == []
    assert [v.code for v in probe.tick(node, 61.0)] == ["monitor_unreachable"]


def test_an_init_that_fails_is_a_source_that_is_down():
    probe, node = SourceProbe(), scene()
    probe.observe(call(0.0, "failed", "nvmlInit_v2", gpu=None, error="NO_PERMISSION"), node, 0.0)
    assert [v.code for v in probe.tick(node, 60.0)] == ["monitor_unreachable"]
    ended = probe.observe(call(70.0, "returned", "nvmlInit_v2", gpu=None), node, 70.0)
    assert [v.code for v in ended] == ["monitor_unreachable", "probe_permission"]
