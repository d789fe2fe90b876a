import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine.beat import beat_of
from engine.core.sequence import Finish
from tests.engine.replica import Replica, events, replica, settings

PATHS_OF_READINESS = ("/ready", "/readyz")


async def begin_stream(here: Replica, **wish: Any) -> tuple[Any, asyncio.Task[list[Any]]]:
    """A stream whose first token has come; the rest waits for steps."""
    body = {"model": "tiny", "prompt": "a", "stream": True, "ignore_eos": True, "max_tokens": 6, **wish}
    assert here.pace is not None
    here.pace.allow(1)
    answer = await here.session.post(here.base + "/v1/completions", json=body)
    assert answer.status == 200
    return answer, asyncio.create_task(events(answer))


async def readiness(here: Replica) -> set[tuple[int, bool, str]]:
    answers = [await here.call("GET", path) for path in PATHS_OF_READINESS]
    return {(status, body["ready"], body["reason"]) for status, body, _ in answers}


async def test_a_loading_replica_lives_and_is_not_ready(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), loaded=False) as here:
        assert await readiness(here) == {(503, False, "loading")}
        assert {(await here.call("GET", path))[0] for path in ("/health", "/healthz")} == {200}
        status, body, headers = await here.complete()
    assert (status, body["error"]["type"], body["error"]["code"]) == (503, "unavailable", "loading")
    assert int(headers["Retry-After"]) >= 1


async def test_a_fence_keeps_new_work_out_and_lets_the_old_end(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        _, old = await begin_stream(here)
        status, body, _ = await here.call("POST", "/drain", {"exit": False, "reason": "fenced"})
        assert (status, body["admitting"], body["reason"], body["open_requests"]) == (200, False, "fenced", 1)
        assert await readiness(here) == {(503, False, "fenced")}
        status, body, headers = await here.complete()
        assert (status, body["error"]["code"]) == (503, "fenced")
        assert int(headers["Retry-After"]) >= 1
        here.pace.free()
        *_, last, done = await old
        assert (last["choices"][0]["finish_reason"], done) == ("length", "[DONE]")
        assert not here.over.done(), "a fence never ends the process"


async def test_panic_gets_through_a_fence(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        await here.call("POST", "/drain", {})
        wish = {"model": "tiny", "prompt": "a", "max_tokens": 1}
        status, _, _ = await here.call("POST", "/v1/completions", wish, **{"x-corral-panic": "1"})
        assert status == 200


async def test_a_lifted_fence_admits_again(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        await here.call("POST", "/drain", {"exit": False})
        status, body, _ = await here.call("DELETE", "/drain")
        assert (status, body["admitting"]) == (200, True)
        assert await readiness(here) == {(200, True, "ready")}
        assert (await here.complete())[0] == 200


async def test_a_drain_ends_the_process_with_its_last_request(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        _, old = await begin_stream(here)
        status, body, _ = await here.call("POST", "/drain", {"exit": True, "ttl_s": 600, "reason": "moved"})
        assert (status, body["draining"], body["open_requests"]) == (200, True, 1)
        assert await readiness(here) == {(503, False, "draining")}
        assert (await here.call("DELETE", "/drain"))[0] == 409
        wish = {"model": "tiny", "prompt": "a"}
        status, body, _ = await here.call("POST", "/v1/completions", wish, **{"x-corral-panic": "1"})
        assert (status, body["error"]["code"]) == (503, "draining")
        assert not here.over.done()
        here.pace.free()
        assert (await old)[-1] == "[DONE]"
        assert await here.over == 0
        assert here.service.ok == 1


async def test_a_drain_of_an_idle_replica_ends_it_at_once(tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        await here.call("POST", "/drain", {"exit": True, "ttl_s": 600})
        assert await here.over == 0


async def test_when_the_time_is_over_streams_end_as_aborted_with_their_usage(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        _, old = await begin_stream(here, stream_options={"include_usage": True})
        await here.call("POST", "/drain", {"exit": True, "ttl_s": 0})
        await here.until(lambda: here.service.gate.cut_off)  # the order to abort is given; the next step sees it
        here.pace.allow(1)
        *_, last, usage, done = await old
        assert last["choices"][0]["finish_reason"] == "abort"
        assert usage["usage"]["completion_tokens"] >= 1
        assert done == "[DONE]"
        assert await here.over == 3
        assert here.service.failed == 1


async def test_an_answer_that_has_not_begun_is_sent_elsewhere_when_cut_off(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        waiting = [asyncio.create_task(here.complete(stream=streamed)) for streamed in (True, False)]
        await here.until(lambda: here.service.gate.open_requests == 2)
        await here.call("POST", "/drain", {"exit": True, "ttl_s": 0})
        await here.until(lambda: here.service.gate.cut_off)  # the order to abort is given; the next step sees it
        here.service.loaded.runner.allow(1)
        for task in waiting:
            status, body, headers = await task
            assert status in {200, 503}
            if status == 503:
                assert body["error"]["code"] == "cut_off"
                assert "Retry-After" in headers
        assert await here.over == 3


@pytest.mark.parametrize("body", [b"{", {"exit": "yes"}, {"ttl_s": -1}, {"until": 5}])
async def test_a_wrong_order_changes_nothing(body: Any, tiny_model: Path) -> None:
    async with replica(settings(tiny_model)) as here:
        status, answer, _ = await here.call("POST", "/drain", body)
        assert status == 400
        assert answer["error"]["message"]
        assert await readiness(here) == {(200, True, "ready")}


async def test_a_replica_whose_step_loop_failed_says_so_and_ends(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), broken=True) as here:
        answers = await asyncio.gather(here.complete(), here.complete(stream=True))
        assert [(status, body["error"]["code"]) for status, body, _ in answers] == [(503, "failed")] * 2
        assert {(await here.call("GET", path))[0] for path in ("/health", "/healthz")} == {503}
        assert await readiness(here) == {(503, False, "failed")}
        assert await here.over == 1
        assert here.service.failed in {1, 2}  # the second may already find the gate closed
        assert not beat_of(here.service).ready


async def test_a_stream_that_breaks_is_not_called_done(tiny_model: Path) -> None:
    async with replica(settings(tiny_model), paced=True) as here:
        _, old = await begin_stream(here)
        here.service._answers.deliver([type_of_end(here)])
        *_, last = await old
        assert last["error"]["code"] == "failed"


def type_of_end(here: Replica) -> Any:
    from engine.core.sequence import Output

    [name] = here.service._answers._queues
    return Output(name, None, Finish.ERROR)


async def test_the_beat_tells_the_state_and_what_waits_although_no_step_ends(tiny_model: Path) -> None:
    async with replica(settings(tiny_model, max_running=1), paced=True) as here:
        tasks = [asyncio.create_task(here.complete(max_tokens=2)) for _ in range(3)]
        await here.until(lambda: here.service.gate.open_requests == 3)
        await here.until(lambda: beat_of(here.service).waiting == 2)
        beat = beat_of(here.service)
        assert (beat.ready, beat.admitting, beat.running, beat.step, beat.last_step_ns) == (True, True, 1, 0, 0)
        assert beat.oldest_wait_since_ns > 0
        here.service.gate.fence()
        assert not beat_of(here.service).admitting
        here.pace.free()
        await asyncio.gather(*tasks)
        beat = beat_of(here.service)
        assert (beat.running, beat.waiting, beat.requests_ok, beat.tokens) == (0, 0, 3, 6)
        assert beat.last_step_ns > 0
        assert beat.p999_step_ns > 0
        assert beat.kv_ratio == 0.0
