"""The canary of a replica that serves: on demand, while idle, and what follows when it finds something."""

import asyncio
from pathlib import Path

from engine.beat import beat_of
from tests.engine.health.made import flip, weights_of
from tests.engine.replica import replica, settings


async def test_a_clean_replica_passes_on_demand_and_tells(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        assert (await here.call("GET", "/canary"))[1]["outcome"] == "learned"
        status, told, _ = await here.call("POST", "/canary", {})
        assert (status, told["outcome"], told["text"]) == (200, "passed", "")
        assert [check["outcome"] for check in told["checks"]] == ["passed"] * 3
        beat = beat_of(here.service)
        assert (beat.canaries, beat.wrong_product, beat.wrong_answer, beat.wrong_weights) == (2, False, False, False)
        assert beat.admitting
        _, text, _ = await here.call("GET", "/metrics")
        assert b'corral_engine_canary_runs_total{outcome="passed"} 1.0' in text


async def test_a_canary_on_demand_takes_its_turns_between_steps(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        work = asyncio.create_task(here.complete(max_tokens=60, ignore_eos=True))
        await here.until(lambda: beat_of(here.service).running == 1)
        told = asyncio.create_task(here.call("POST", "/canary", {}))
        here.pace.free()  # type: ignore[union-attr]
        assert (await told)[1]["outcome"] == "passed"
        assert (await work)[0] == 200


async def test_one_that_computes_wrong_takes_no_new_work_and_says_so_everywhere(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        assert here.service.loaded is not None
        flip(weights_of(here.service.loaded)["0.out"], 3, 30)
        status, told, _ = await here.call("POST", "/canary", {})
        assert (status, told["outcome"]) == (200, "wrong_weights")
        assert (await here.call("GET", "/ready"))[1]["reason"] == "corrupt"
        status, body, headers = await here.complete()
        assert (status, body["error"]["code"], "Retry-After" in headers) == (503, "corrupt", True)
        beat = beat_of(here.service)
        assert (beat.wrong_weights, beat.wrong_answer, beat.wrong_product, beat.admitting) == (True, True, False, False)
        flip(weights_of(here.service.loaded)["0.out"], 3, 30)
        assert (await here.call("POST", "/canary", {}))[1]["outcome"] == "passed"
        assert (await here.call("GET", "/ready"))[0] == 503  # who has computed wrong once is not trusted again


async def test_an_idle_replica_looks_at_itself_now_and_then(tiny_model: Path) -> None:
    async with replica(settings(tiny_model, canary_s=0.05)) as here:
        await here.until(lambda: beat_of(here.service).canaries >= 3)
        assert (await here.complete())[0] == 200
        assert beat_of(here.service).step > 0


async def test_a_request_without_numbers_makes_an_idle_replica_look_at_itself(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:  # by itself it would in 15 minutes
        assert here.service.loaded is not None
        weights_of(here.service.loaded)["embed"][7] = float("nan")
        assert (await here.complete([5, 6], max_tokens=2))[0] == 200
        assert beat_of(here.service).canaries == 1
        assert (await here.complete([5, 7], max_tokens=2))[0] == 200
        await here.until(lambda: beat_of(here.service).canaries == 2)
        await here.until(lambda: not beat_of(here.service).admitting)
        assert beat_of(here.service).wrong_weights


async def test_a_prompt_without_numbers_that_is_cancelled_on_its_way_does_so_too(tiny_model: Path) -> None:
    async with replica(settings(tiny_model, step_tokens=16), paced=True) as here:
        assert here.service.loaded is not None
        assert here.pace is not None
        weights_of(here.service.loaded)["embed"][7] = float("nan")
        gone = asyncio.create_task(here.complete([7, *range(20, 120)]))
        here.pace.allow(1)
        await here.until(lambda: beat_of(here.service).step == 1)
        gone.cancel()
        await here.until(lambda: here.service.gate.open_requests == 0)
        here.pace.free()
        await here.until(lambda: not beat_of(here.service).admitting)
        assert beat_of(here.service).wrong_weights


async def test_while_it_loads_there_is_no_canary_yet(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), loaded=False) as here:
        assert (await here.call("GET", "/canary"))[1]["outcome"] is None
        assert (await here.call("POST", "/canary", {}))[0] == 503
