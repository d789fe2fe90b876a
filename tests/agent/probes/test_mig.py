import msgspec

from agent.probes.mig import MigProbe
from tests.agent.made import identity, inventory, sample, scene, uuid
from vocab.observations import DriverEvent


def listed(at, *names, gpu=0):
    slices = tuple({"uuid": name, "gi": n, "ci": 0} for n, name in enumerate(names, 1))
    return msgspec.structs.replace(inventory(at), gpus=(identity(gpu, mig=slices), identity(7)))


def play(*observations, probe=None):
    probe = probe or MigProbe()
    return [(type(v).__name__, v.code) for seen in observations for v in probe.observe(seen, scene(), seen.at)]


def announced(at):
    return DriverEvent(at=at, gpu=uuid(0), type="other", data=0x100)


def test_the_first_list_is_what_there_should_be():
    assert play(listed(0.0, "a", "b"), listed(1.0, "a", "b")) == []


def test_fewer_after_an_announcement_is_a_change():
    assert play(listed(0.0, "a", "b"), announced(1.0), listed(2.0, "a")) == [("Finding", "mig_reconfigured")]
    assert play(listed(0.0, "a", "b"), announced(1.0), listed(2.0)) == [("Finding", "mig_reconfigured")]


def test_fewer_after_a_change_of_the_mode_is_a_change():
    modes = (sample(1.0, 0, mig_mode=1), sample(2.0, 0, mig_mode=0))
    assert play(listed(0.0, "a", "b"), *modes, listed(3.0)) == [("Finding", "mig_reconfigured")]


def test_an_announcement_is_good_for_one_list():
    found = play(listed(0.0, "a", "b"), announced(1.0), listed(2.0, "a", "b"), listed(3.0, "a"))
    assert found == [("Finding", "mig_instance_missing")]


def test_an_event_about_something_else_announces_nothing():
    clock = DriverEvent(at=1.0, gpu=uuid(0), type="other", data=0x10)
    assert play(listed(0.0, "a", "b"), clock, listed(2.0, "a")) == [("Finding", "mig_instance_missing")]


def test_each_missing_instance_is_said_once():
    found = play(listed(0.0, "a", "b", "c"), listed(1.0, "a"), listed(2.0, "a"))
    assert found == [("Finding", "mig_instance_missing")] * 2


def test_a_new_partition_ends_what_was_missing_of_the_old_one():
    found = play(listed(0.0, "a", "b"), listed(1.0, "a"), listed(2.0, "c"))
    assert found == [
        ("Finding", "mig_instance_missing"),
        ("Clear", "mig_instance_missing"),
        ("Finding", "mig_reconfigured"),
    ]


def test_the_word_on_a_change_may_come_after_the_list():
    modes = (sample(1.0, 0, mig_mode=1), listed(2.0), sample(5.0, 0, mig_mode=0), listed(9.0))
    told = [("Clear", "mig_instance_missing"), ("Finding", "mig_reconfigured")]
    assert play(listed(0.0, "a"), *modes) == [("Finding", "mig_instance_missing"), *told]
    assert play(listed(0.0, "a"), listed(2.0), announced(4.0), listed(9.0))[1:] == told


def test_a_change_that_is_announced_long_after_is_another_one():
    assert play(listed(0.0, "a", "b"), listed(2.0, "a"), announced(400.0)) == [("Finding", "mig_instance_missing")]


def test_a_gpu_that_is_gone_has_no_missing_instances():
    assert play(listed(0.0, "a", "b"), inventory(1.0, gpus=(7,)), listed(2.0, "a", "b")) == []


def test_after_a_reset_there_are_no_instances_and_nobody_wonders():
    probe = MigProbe()
    play(listed(0.0, "a", "b"), probe=probe)
    probe.forget(uuid(0))
    assert play(listed(1.0), listed(2.0, "x"), probe=probe) == [("Finding", "mig_reconfigured")]
