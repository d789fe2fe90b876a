from typing import Any

from agent.probes.probe import Clear, Finding
from agent.probes.slow_steps import SlowStepsProbe
from tests.agent.made import replica, scene, uuid


def look(probe: SlowStepsProbe, at: float, index: int, over_floor: float | None, **more: Any) -> list[Any]:
    """Replica ``index`` on the GPU of that index works."""
    usual = {"replica": f"r{index}", "gpus": (uuid(index),), "running": 2, "over_floor": over_floor}
    return list(probe.observe(replica(at, **(usual | more)), scene(), at))


def play(*paces: float | None, until: float = 200.0, **more: Any) -> list[Any]:
    """Engines side by side, looked at each ten seconds; ``more`` is of the last."""
    probe, found = SlowStepsProbe(), []
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
    probe, found = SlowStepsProbe(), []
    for turn in range(30):
        for index in range(3):
            found += look(probe, turn * 10.0, index, 1.5 if index < 2 or turn > 20 else 3.0)
    assert [type(one) for one in found] == [Finding, Clear]
