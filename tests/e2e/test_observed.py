"""An engine that nobody handed over: seen with its GPUs, model and owner; judged; never signalled. Real processes."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, fleet
from tests.fakes.vllm.running import running

pytestmark = pytest.mark.e2e

FREE = (6, 7)  # GPUs on which `corral up` starts nothing


async def observed(running_fleet: Fleet, state: str = "ready") -> dict[str, Any] | None:
    """The observed replica of ``smol``, once it is in this state."""
    found = [each for each in await running_fleet.replicas("smol") if each["state"] == state]
    return found[0] if found else None


def beside(house: Fleet, **flags: object) -> Any:
    """A fake vLLM on two virtual GPUs of this house."""
    gpus = ",".join(map(str, FREE))
    return running("smol", clients=house.plan.run / "clients", gpus=gpus, tensor_parallel_size=2, **flags)


async def test_a_vllm_that_was_there_is_seen_judged_and_left_alone(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as house, beside(house, rate=50) as vllm:
        await vllm.up()
        seen = await house.until("the vLLM is observed", lambda: observed(house), 60)
        gpus = {gpu["index"]: gpu for gpu in await house.gpus()}
        print(seen)
        assert seen["gpus"] == [gpus[index]["uuid"] for index in FREE]
