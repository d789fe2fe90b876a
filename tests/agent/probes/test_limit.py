from agent.probes.limit import LimitProbe
from agent.probes.profiling import ProfilingProbe
from agent.probes.slow import SlowProbe
from tests.agent.made import sample, scene, uuid


def play(probe, *samples):
    return [(type(v).__name__, v.gpu) for one in samples for v in probe.observe(one, scene(), one.at)]


def limits(rounds, *watts):
    return [sample(float(t), i, power_limit_w=w) for t in range(rounds) for i, w in enumerate(watts)]


def test_one_limit_under_those_of_its_peers_is_low():
    assert play(LimitProbe(), *limits(6, 700.0, 500.0, 700.0, 700.0)) == [("Finding", uuid(1))]


def test_a_limit_that_all_have_is_meant():
    probe = LimitProbe()
    assert play(probe, *limits(6, 700.0, 700.0, 700.0)) == []
    assert play(probe, *limits(6, 500.0, 500.0, 500.0)) == []


def test_of_two_that_differ_nobody_can_say_which_is_low():
    assert play(LimitProbe(), *limits(6, 700.0, 500.0)) == []


def test_of_two_the_one_that_fell_is_low():
    probe = LimitProbe()
    play(probe, *limits(3, 700.0, 700.0))
    assert play(probe, *limits(6, 700.0, 500.0)) == [("Finding", uuid(1))]


def test_the_only_gpu_is_measured_by_itself():
    assert play(LimitProbe(), *limits(3, 700.0)) == []
    falls = [*limits(3, 700.0), *limits(3, 500.0)]
    assert play(LimitProbe(), *falls) == [("Finding", uuid(0))]


def works(at, index, mhz, reasons=0, busy=0.9):
    return sample(float(at), index, sm_clock_hz=mhz * 1e6, utilization_ratio=busy, clock_reasons=reasons)


def clocks(first, **more):
    return [
        works(t, i, first if i == 0 else 1_900, **(more if i == 0 else {})) for t in range(0, 300, 20) for i in range(4)
    ]


def test_clocks_far_under_those_of_the_peers_at_work_are_slow():
    assert play(SlowProbe(), *clocks(700)) == [("Finding", uuid(0))]


def test_clocks_a_little_under_those_of_the_peers_are_not():
    assert play(SlowProbe(), *clocks(1_600)) == []


def test_what_is_idle_or_has_a_named_reason_is_slow_on_purpose():
    assert play(SlowProbe(), *clocks(300, busy=0.0)) == []
    assert play(SlowProbe(), *clocks(900, reasons=0x40)) == []
    assert play(SlowProbe(), *clocks(900, reasons=0x80)) == []


def test_the_power_cap_is_no_reason_that_others_do_not_have():
    assert play(SlowProbe(), *clocks(700, reasons=0x4)) == [("Finding", uuid(0))]


def activity(at, **readings):
    usual = {"utilization_ratio": 1.0, "power_w": 210.0, "power_limit_w": 230.0}
    return sample(float(at), 0, **(usual | readings))


def test_zero_activity_on_a_working_gpu_is_a_broken_counter():
    assert play(ProfilingProbe(), *(activity(t, graphics_active_ratio=0.0) for t in range(3))) == [("Finding", uuid(0))]


def test_little_activity_is_a_small_kernel():
    assert play(ProfilingProbe(), *(activity(t, sm_active_ratio=0.0076) for t in range(9))) == []


def test_one_counter_that_works_proves_the_path():
    reads = [activity(t, graphics_active_ratio=0.99, sm_active_ratio=0.0) for t in range(9)]
    assert play(ProfilingProbe(), *reads) == []


def test_an_idle_gpu_and_one_without_power_prove_nothing():
    assert (
        play(ProfilingProbe(), *(activity(t, graphics_active_ratio=0.0, utilization_ratio=0.0) for t in range(9))) == []
    )
    assert play(ProfilingProbe(), *(activity(t, graphics_active_ratio=0.0, power_w=None) for t in range(9))) == []
    assert play(ProfilingProbe(), *(activity(t, graphics_active_ratio=0.0, power_w=60.0) for t in range(9))) == []
