"""Which GPUs replicas may start on: what was read with success, and after a boot what has passed the baseline too."""

import pytest

from agent.latest import Latest
from tests.agent.made import inventory, sample, scene, source, uuid
from vocab.states import Level

SOUND = {"ecc_uncorrectable": 0, "remap_failed": 0, "fabric_state": 3, "fabric_status": 0}


def latest(*, new_boot: bool) -> Latest:
    return Latest(Level.REPAIR, "1", "", new_boot=new_boot)


@pytest.mark.parametrize("new_boot", [True, False])
def test_a_gpu_that_was_not_read_is_not_proven(new_boot):
    assert latest(new_boot=new_boot).proven == frozenset()


@pytest.mark.parametrize("reading", [{"ecc_uncorrectable": 1}, {"remap_failed": 1}, {"fabric_state": 2}])
def test_after_a_boot_a_gpu_that_fails_a_baseline_check_takes_no_replica_until_it_passes(reading):
    shown = latest(new_boot=True)
    shown.take(sample(1.0, 0, **(SOUND | reading)), scene(), 1.0)
    assert shown.proven == frozenset()
    shown.take(sample(2.0, 0, **SOUND), scene(), 2.0)
    assert shown.proven == {uuid(0)}


def test_a_gpu_that_has_passed_since_the_boot_stays_proven_for_restarts_of_its_replica():
    shown = latest(new_boot=True)
    shown.take(sample(1.0, 0, **SOUND), scene(), 1.0)
    shown.take(sample(2.0, 0, **(SOUND | {"ecc_uncorrectable": 1})), scene(), 2.0)
    assert shown.proven == {uuid(0)}


def test_an_agent_that_starts_in_the_same_boot_asks_for_no_baseline():
    shown = latest(new_boot=False)
    shown.take(sample(1.0, 0, **(SOUND | {"ecc_uncorrectable": 1})), scene(), 1.0)
    assert shown.proven == {uuid(0)}


def test_a_remap_that_waits_for_a_reset_keeps_no_replica_off():
    shown = latest(new_boot=True)
    shown.take(sample(1.0, 0, **(SOUND | {"remap_pending": 1})), scene(), 1.0)
    assert shown.proven == {uuid(0)}


def test_an_agent_is_not_ready_while_a_source_is_down_and_is_once_it_is_back():
    shown = latest(new_boot=False)
    shown.take(inventory(0.0), scene(), 0.0)
    assert shown.ready() == (True, "watching")
    shown.take(source(130.0, "down", "dcgm", "ConnectionInvalid"), scene(), 130.0)
    assert shown.ready() == (False, "dcgm is down: ConnectionInvalid")
    shown.take(source(400.0, "up", "dcgm"), scene(), 400.0)
    assert shown.ready() == (True, "watching")
