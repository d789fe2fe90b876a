"""What becomes of a replica when its device fails, hangs or has no memory."""

import asyncio
from pathlib import Path

import pytest

from engine.beat import beat_of
from engine.core.sequence import Step
from tests.engine.health.test_verdicts import accelerator_error
from tests.engine.replica import Replica, replica, settings
from vocab.catalogue.exits import EngineExit


def fail(here: Replica, *errors: BaseException) -> None:
    """Steps raise what is given, once for each, and then work."""
    assert here.service.loaded is not None
    runner = here.service.loaded.runner
    inner, left = runner.run, list(errors)

    def run(step: Step) -> list[int]:
        if left:
            raise left.pop(0)
        return inner(step)

    runner.run = run  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("code", "exit_code", "words"),
    [
        (214, EngineExit.GPU_FAULT, "CUDA error 214 (ECCUncorrectable)"),
        (700, EngineExit.CRASHED, "CUDA error 700 (IllegalAddress)"),
    ],
)
async def test_a_sticky_error_ends_the_process_with_its_reason_and_is_not_tried_again(
    code: int, exit_code: EngineExit, words: str, tiny_model: Path
) -> None:
    async with replica(settings(tiny_model)) as here:
        fail(here, accelerator_error(code))  # a second try would work
        status, body, _ = await here.complete()
        assert (status, body["error"]["code"]) == (503, "failed")
        assert await here.over == exit_code
        beat = beat_of(here.service)
        assert (beat.error_code, beat.ready, beat.admitting) == (code, False, False)
        assert here.service.farewell.startswith(words)


async def test_a_step_without_memory_is_cut_in_halves_and_no_request_is_lost(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        fail(here, *[accelerator_error(2)] * 3)
        status, body, _ = await here.complete(list(range(5, 61)), max_tokens=4, ignore_eos=True, return_token_ids=True)
        assert status == 200
        assert len(body["choices"][0]["token_ids"]) == 4
        assert here.service.loaded.scheduler.step_tokens == 32  # type: ignore[union-attr]
        _, text, _ = await here.call("GET", "/metrics")
        assert b"corral_engine_out_of_memory_total 3.0" in text
        assert not here.over.done()


async def test_when_not_even_one_token_has_memory_it_ends_and_says_so(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        fail(here, *[accelerator_error(2)] * 20)
        assert (await here.complete())[0] == 503
        assert await here.over == EngineExit.OUT_OF_MEMORY


async def test_a_step_that_hangs_shows_since_when_and_what_waits(tiny_model: Path) -> None:
    async with replica(settings(tiny_model, max_running=1), paced=True) as here:
        first = asyncio.create_task(here.complete(max_tokens=2))
        await here.until(lambda: beat_of(here.service).step_began_ns > 0)
        second = asyncio.create_task(here.complete(max_tokens=2))
        await here.until(lambda: beat_of(here.service).waiting == 1)
        one, two = beat_of(here.service), beat_of(here.service)
        assert one.step_began_ns == two.step_began_ns < two.written_ns
        assert (two.step, two.running, two.oldest_wait_since_ns > 0) == (0, 1, True)
        here.pace.free()  # type: ignore[union-attr]
        await asyncio.gather(first, second)
        await here.until(lambda: beat_of(here.service).step_began_ns == 0)
