from agent.probes.canary import CanaryProbe
from agent.replicas.canary import Canaries
from tests.agent.made import replica, scene, uuid
from vocab.beat import Beat


def told(known: Canaries, **beat: object) -> list[str]:
    return [check.result for check in known.checks(Beat(pid=7, **beat), "r1", 1.0, "n1")]  # type: ignore[arg-type]


def test_each_run_is_told_once() -> None:
    canaries = Canaries()
    assert told(canaries) == []
    assert [told(canaries, canaries=runs) for runs in (1, 1, 2)] == [["pass"], [], ["pass"]]


def test_another_process_begins_anew() -> None:
    canaries = Canaries()
    told(canaries, canaries=1)
    assert [check.result for check in canaries.checks(Beat(pid=8, canaries=1), "r1", 1.0, "n1")] == ["pass"]
    assert canaries.checks(None, "r1", 1.0, "n1") == ()


def test_a_wrong_run_makes_the_judge_speak_of_the_gpu_that_computes_wrong() -> None:
    [check] = Canaries().checks(Beat(pid=7, canaries=2, wrong_product=True, wrong_answer=True), "r1", 2.0, "n1")
    assert check.result == "problem"
    assert check.text == (
        "the engine's canary: exact products came out wrong, known prompts got other answers than before"
    )
    probe = CanaryProbe()
    assert probe.observe(replica(0.0, step=1), scene(), 0.0) == ()
    [found] = probe.observe(check, scene(), 2.0)
    assert (found.code, found.gpu) == ("silent_corruption", uuid(0))
