from typing import Any

from agent.judge.judge import Judge
from agent.probes.probe import Clear, Finding
from agent.probes.slow import SlowProbe
from agent.probes.slow_steps import SlowSteps
from tests.agent.made import cleared, codes, inventory, replica, sample, scene, uuid


def look(probe: SlowSteps | SlowProbe, at: float, index: int, over_floor: float | None, **more: Any) -> list[Any]:
    """Replica ``index`` on the GPU of that index works."""
    usual = {"replica": f"r{index}", "gpus": (uuid(index),), "running": 2, "over_floor": over_floor}
    return list(probe.observe(replica(at, **(usual | more)), scene(), at))


def play(*paces: float | None, until: float = 200.0, **more: Any) -> list[Any]:
    """Engines side by side, looked at each ten seconds; ``more`` is of the last."""
    probe, found = SlowSteps(), []
    for turn in range(int(until / 10)):
        for index, pace in enumerate(paces):
            found += look(probe, turn * 10.0, index, pace, **(more if index == len(paces) - 1 else {}))
    return found


def test_an_engine_slower_than_its_peers_for_two_minutes_is_a_slow_gpu() -> None:
    [found] = play(1.5, 1.5, 1.6, 3.0)
    assert isinstance(found, Finding)
    assert (found.code, found.gpu) == ("slow_gpu", uuid(3))
    assert found.text == "its steps take 3.0 times their floor where those of its peers take 1.5 times"
    assert play(1.5, 1.5, 1.6, 3.0, until=100.0) == []


def test_a_few_per_cent_are_nothing_and_neither_is_what_is_slow_together() -> None:
    assert play(1.5, 1.5, 1.6, 1.9) == []
    assert play(3.0, 3.0, 3.1, 3.0, over_usual=5.0) == []


def test_without_peers_its_own_history_speaks() -> None:
    [found] = play(3.0, over_usual=2.5)
    assert found.text == "its steps take 2.5 times as long as they used to"
    assert play(3.0, over_usual=1.5) == []
    assert play(3.0) == []


def test_engines_of_another_deployment_and_idle_ones_say_nothing() -> None:
    assert play(1.5, 1.5, 1.6, 3.0, deployment="other") == []
    assert play(1.5, 1.5, 1.6, 3.0, running=0) == []
    assert play(1.5, 1.5, 1.6, None) == []
    assert play(1.5, 1.5, 1.6, 3.0, gpus=(uuid(3), uuid(4))) == []


def test_one_that_keeps_up_again_is_slow_no_longer() -> None:
    probe, found = SlowSteps(), []
    for turn in range(30):
        for index in range(3):
            found += look(probe, turn * 10.0, index, 1.5 if index < 2 or turn > 20 else 3.0)
    assert [type(one) for one in found] == [Finding, Clear]


def ended(probe: SlowSteps | SlowProbe, at: float, observation: Any) -> list[str | None]:
    return [one.gpu for one in probe.observe(observation, scene(), at) if isinstance(one, Clear)]


def told_of(probe: SlowSteps | SlowProbe) -> None:
    """An engine on GPU 0 tells that its steps take longer than they used to, and then rests."""
    found = [look(probe, turn * 10.0, 0, 3.0, over_usual=2.5) for turn in range(20)]
    assert [one.gpu for turn in found for one in turn] == [uuid(0)]
    assert look(probe, 200.0, 0, 3.0, running=0) == []


def test_what_an_engine_told_ends_when_it_leaves() -> None:
    probe = SlowSteps()
    told_of(probe)
    assert ended(probe, 210.0, replica(210.0, replica="r1", phase="stopped")) == []
    assert ended(probe, 220.0, replica(220.0, replica="r0", phase="stopped")) == [uuid(0)]
    assert ended(probe, 230.0, replica(230.0, replica="r0", phase="stopped")) == []
    told_of(probe)


def test_what_an_engine_told_stands_while_another_shares_its_gpu() -> None:
    probe = SlowSteps()
    told_of(probe)
    look(probe, 210.0, 1, 3.0, gpus=(uuid(0),), over_usual=2.5)
    assert ended(probe, 220.0, replica(220.0, replica="r0", phase="stopped")) == []
    assert ended(probe, 230.0, replica(230.0, replica="r1", phase="stopped")) == [uuid(0)]


def test_what_an_engine_told_ends_where_nobody_saw_it_leave() -> None:
    probe = SlowProbe()
    told_of(probe)
    assert ended(probe, 800.0, works(800.0, 1, 1_900)) == []
    assert ended(probe, 801.0, works(801.0, 1, 1_900)) == [uuid(0)]


def works(at: float, index: int, mhz: float) -> Any:
    return sample(at, index, sm_clock_hz=mhz * 1e6, utilization_ratio=0.9, clock_reasons=0)


def judged(clock_until: float, steps_until: float, until: float = 600.0) -> list[tuple[float, str]]:
    """When a GPU's slowness begins and ends, of which clocks and steps are witnesses until then."""
    judge, found = Judge("n1", "boot"), []
    judge.observe(inventory(0.0, (0, 1, 2)), 0.0)
    for turn in range(int(until / 10)):
        at = turn * 10.0
        for index in range(3):
            slow = index == 0
            items = judge.observe(works(at, index, 700 if slow and at < clock_until else 1_900), at)
            pace = 3.0 if slow and at < steps_until else 1.5
            items += judge.observe(
                replica(at, replica=f"r{index}", gpus=(uuid(index),), running=2, over_floor=pace), at
            )
            found += [(at, code) for code in codes(items)] + [(at, f"end of {code}") for code in cleared(items)]
    return found


def test_what_clocks_and_steps_see_is_one_slow_gpu_and_ends_with_the_last_of_them() -> None:
    for clock_until, steps_until in ((0.0, 300.0), (300.0, 0.0), (300.0, 450.0), (450.0, 300.0)):
        first, *_, last = told = judged(clock_until, steps_until)
        assert (first[0] <= 130.0, first[1]) == (True, "slow_gpu")
        assert last == (max(clock_until, steps_until) + 20.0, "end of slow_gpu")
        assert [code for _, code in told].count("end of slow_gpu") == 1
