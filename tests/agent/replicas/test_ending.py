import pytest

from agent.adapters.torch import TORCH
from agent.adapters.vllm import VLLM
from agent.replicas.ending import named
from vocab.catalogue.exits import EngineExit
from vocab.observations import Exit


@pytest.mark.parametrize(
    ("code", "asked", "reason"),
    [
        (EngineExit.DRAINED, True, "drained"),
        (EngineExit.CUT_OFF, True, "cut off"),
        (EngineExit.CUT_OFF, False, "crashed"),
        (EngineExit.CRASHED, False, "crashed"),
        (EngineExit.GPU_FAULT, False, "gpu fault"),
        (EngineExit.GPU_FAULT, True, "gpu fault"),
        (EngineExit.OUT_OF_MEMORY, False, "out of memory"),
    ],
)
def test_our_engines_exit_codes_have_names(code: EngineExit, reason: str, *, asked: bool) -> None:
    assert named(Exit(code=code), asked=asked, killed=False, codes=TORCH.exits).reason == reason


def test_the_same_code_of_another_engine_says_nothing() -> None:
    assert named(Exit(code=4), asked=False, killed=False, codes=VLLM.exits).reason == "crashed"
