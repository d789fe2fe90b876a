import msgspec
import pytest

from agent.probes.fabric import FabricProbe, problems_of
from agent.probes.link_errors import LinkErrorsProbe
from agent.probes.link_speed import LinkSpeedProbe
from agent.probes.links import LinksProbe
from agent.probes.probe import Clear
from tests.agent.made import identity, inventory, sample, scene
from vocab.events import Recovery, Severity
from vocab.readings import LinkReadings


def board(name, **changes):
    made = scene(**changes)
    seen = inventory(0.0, **changes)
    made.see(msgspec.structs.replace(seen, gpus=tuple(identity(i, name=name) for i in range(8))))
    return made


def linked(at, states, **readings):
    links = {str(n): LinkReadings(state=state) for n, state in enumerate(states)}
    return msgspec.structs.replace(sample(at, 0, **({"power_w": 80.0} | readings)), links=links)


def play(probe, node, *samples):
    return [v for one in samples for v in probe.observe(one, node, one.at)]


def test_a_link_that_goes_down_is_named_and_its_return_ends_it():
    found = play(
        LinksProbe(), scene(), linked(1.0, [1, 1]), linked(2.0, [1, 0]), linked(3.0, [1, 0]), linked(4.0, [1, 1])
    )
    assert [(type(v).__name__, v.device) for v in found] == [("Finding", "link:1"), ("Clear", "link:1")]
    assert found[0].fields == {"link": 1, "links": 2, "down": [1]}


def test_all_links_at_once_are_the_fabric_and_no_reason_for_a_reset():
    found = play(LinksProbe(), scene(), linked(1.0, [0, 0]))
    assert {v.recovery for v in found} == {Recovery.INVESTIGATE}


def test_a_card_without_its_bridge_has_no_links():
    assert play(LinksProbe(), board("NVIDIA H100 PCIe"), linked(1.0, [0] * 18)) == []


def test_a_bridge_that_was_there_and_is_not_any_more_is():
    found = play(LinksProbe(), board("NVIDIA H100 PCIe"), linked(1.0, [1, 0]), linked(2.0, [0, 0]))
    assert [v.device for v in found] == ["link:0"]


def test_under_mig_links_say_nothing():
    assert play(LinksProbe(), scene(), linked(1.0, [0, 1], mig_mode=1)) == []


def test_what_a_link_does_not_say_is_not_down():
    assert play(LinksProbe(), scene(), linked(1.0, [1, None])) == []


def errors(at, **counters):
    return msgspec.structs.replace(sample(at, 0, power_w=80.0), links={"5": LinkReadings(**counters)})


def test_counters_from_before_the_first_look_are_history():
    assert play(LinkErrorsProbe(), scene(), errors(1.0, replays=900, crc_errors=10**6)) == []


def test_a_counter_that_falls_began_anew():
    probe = LinkErrorsProbe()
    assert play(probe, scene(), errors(1.0, replays=900), errors(2.0, replays=3)) == []
    (found,) = play(probe, scene(), errors(3.0, replays=4))
    assert found.fields["replays"] == 1


def test_many_crc_errors_a_second_are_worse_than_a_few():
    probe = LinkErrorsProbe()
    few, many = play(
        probe, scene(), errors(0.0, crc_errors=0), errors(10.0, crc_errors=5), errors(20.0, crc_errors=5_000)
    )
    assert (few.severity, many.severity) == (Severity.WARNING, Severity.ERROR)


def test_a_bit_error_rate_over_the_limit_is_an_error():
    (found,) = play(LinkErrorsProbe(), scene(), errors(0.0, effective_ber=2e-11))
    assert found.severity is Severity.ERROR
    assert play(LinkErrorsProbe(), scene(), errors(0.0, effective_ber=1.5e-254)) == []


def fabric(at, state, status=0, mask=None):
    return sample(at, 0, fabric_state=state, fabric_status=status, fabric_health_mask=mask)


def test_a_gpu_without_a_fabric_has_nothing_to_complete():
    assert play(FabricProbe(), scene(), *(fabric(float(t), 0) for t in range(0, 1_000, 50))) == []


def test_a_registration_under_way_gets_five_minutes_from_the_boot():
    probe, node = FabricProbe(), scene(boot_at=0.0)
    assert play(probe, node, fabric(10.0, 2), fabric(299.0, 2)) == []
    assert [v.code for v in play(probe, node, fabric(301.0, 2))] == ["fabric_incomplete"]
    assert isinstance(play(probe, node, fabric(400.0, 3))[0], Clear)


def test_one_that_was_complete_gets_five_minutes_to_come_back():
    probe = FabricProbe()
    assert play(probe, scene(), fabric(0.0, 3), fabric(10.0, 1), fabric(300.0, 1)) == []
    assert [v.code for v in play(probe, scene(), fabric(311.0, 1))] == ["fabric_incomplete"]


def test_a_registration_that_failed_is_complete_in_name_only():
    assert [v.code for v in play(FabricProbe(), scene(), fabric(1.0, 3, status=999))] == ["fabric_incomplete"]


@pytest.mark.parametrize(
    ("mask", "problems"),
    [
        (0x0, []),
        (0x2AA, ["wrong system GUID"]),  # all flags false, configuration 2
        (0x1AA, []),  # all flags false, configuration good
        (0x1, ["degraded bandwidth"]),
        (0x10, ["route unhealthy"]),
        (0x44, ["route recovery", "access timeout recovery"]),
        (0x1100, []),  # configuration good, partition assigned
        (0x900, ["configuration 9"]),
    ],
)
def test_one_means_bad_in_the_flags_and_good_in_the_configuration(mask, problems):
    assert problems_of(mask) == problems


def running(at, *speeds, index=0, **readings):
    links = {str(n): LinkReadings(state=1 if speed else 0, speed_bytes_per_s=speed) for n, speed in enumerate(speeds)}
    made = sample(float(at), index, **({"power_w": 80.0, "utilization_ratio": 0.9} | readings))
    return msgspec.structs.replace(made, links=links)


def test_a_link_at_half_the_speed_of_the_others_is_slow_and_ends_when_it_is_not():
    slow = [running(t, 50e9, 25e9, None) for t in range(4)]
    (found,) = play(LinkSpeedProbe(), board("H200"), *slow)
    assert (found.code, found.device, found.fields["usual_bytes_per_s"]) == ("nvlink_slow", "link:1", 50e9)
    whole = [running(t, 50e9, 50e9, None) for t in range(4, 8)]
    assert isinstance(play(LinkSpeedProbe(), board("H200"), *slow, *whole)[-1], Clear)


def test_links_that_all_run_alike_idle_ones_and_ones_without_a_speed_are_not_slow():
    alike = [running(t, 25e9, 25e9) for t in range(9)]
    idle = [running(t, 50e9, 25e9, utilization_ratio=0.0, performance_state=8) for t in range(9)]
    for samples in (alike, idle, [linked(float(t), (1, 1), utilization_ratio=0.9) for t in range(9)]):
        assert play(LinkSpeedProbe(), board("H200"), *samples) == []


def test_a_gpu_whose_links_are_all_slow_is_told_by_its_peers():
    both = [one for t in range(5) for one in (running(t, 50e9, 50e9, index=1), running(t, 25e9, 25e9))]
    assert [v.device for v in play(LinkSpeedProbe(), board("H200"), *both)] == ["link:0", "link:1"]
