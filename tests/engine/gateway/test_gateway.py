import asyncio
import json
import signal

import aiohttp
import pytest

from engine.gateway.table import Standing
from tests.engine.gateway.stand import Stand
from tests.fakes.replicas import ReplicaProgram


async def test_a_stream_passes_through_byte_for_byte_as_it_comes(stand: Stand) -> None:
    await stand.serve("r1")
    async with stand.post(stream=True, max_tokens=5, return_token_ids=True) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["x-corral-replica"] == "r1"
        events = (await response.text()).split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert [json.loads(event[6:])["choices"][0]["token_ids"] for event in events[:-2]] == [[1], [2], [3], [4], [5]]


async def test_the_first_token_does_not_wait_for_the_last(stand: Stand) -> None:
    await stand.serve("r1", rate=20.0)
    async with stand.post(stream=True, max_tokens=100_000) as response:
        assert (await response.content.readline()).startswith(b"data: {")


async def test_a_request_is_answered_whole_when_it_does_not_stream(stand: Stand) -> None:
    await stand.serve("r1")
    status, body, replica = await stand.ask(max_tokens=3)
    assert (status, replica) == (200, "r1")
    assert body["choices"][0]["message"]["content"] == "t1 t2 t3 "
    assert stand.metric("corral_gateway_requests_total", deployment="chat", code="200") == 1


@pytest.mark.parametrize("fail", ["503", "500", "reset", "exit"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_is_retried_elsewhere_before_its_first_byte(stand: Stand, fail: str, stream: bool) -> None:
    await stand.serve("r1", "r2")
    _, _, first = await stand.ask()
    await stand.programs[first].control(fail=fail, times=1)
    async with stand.post(stream=stream, max_tokens=3) as response:
        text = await response.text()
    assert response.status == 200
    assert "error" not in text
    assert response.headers["x-corral-replica"] != first
    reason = {"503": "unavailable", "500": "error"}.get(fail, "lost")
    assert stand.metric("corral_gateway_retries_total", deployment="chat", reason=reason) == 1


async def test_a_refused_connection_is_retried_elsewhere_and_the_replica_is_out_at_once(stand: Stand) -> None:
    await stand.serve("r1", "r2")
    await stand.programs["r1"].kill()
    for _ in range(4):
        status, _, replica = await stand.ask(say=str(_))
        assert (status, replica) == (200, "r2")
    assert stand.gateway.board.standing("r1") is Standing.REFUSED


async def test_a_drain_is_invisible(stand: Stand) -> None:
    await stand.serve("r1", "r2", rate=100.0)
    async with stand.post(stream=True, max_tokens=60) as response:
        old = stand.programs[response.headers["x-corral-replica"]]
        await old.drain()
        answers = await asyncio.gather(*(stand.ask(say=str(number), max_tokens=2) for number in range(8)))
        assert {status for status, _, _ in answers} == {200}
        assert old.replica not in {replica for _, _, replica in answers}
        assert (await response.text()).endswith("data: [DONE]\n\n")
    assert await old.wait() == 0
    assert stand.metric("corral_gateway_streams_broken_total", deployment="chat") == 0


async def test_a_request_on_which_two_replicas_died_is_not_sent_again(stand: Stand) -> None:
    await stand.serve("r1", "r2", "r3")
    await asyncio.gather(*(each.control(fail="exit") for each in stand.programs.values()))
    status, body, _ = await stand.ask()
    assert (status, body["error"]["code"]) == (502, "replicas_failed")
    await stand.until(lambda: sum(each.ended for each in stand.programs.values()) >= 2, "two died")
    assert [each.ended for each in stand.programs.values()].count(False) == 1
    assert body["error"]["message"].startswith("replicas r")


async def test_an_engines_own_error_is_passed_on_when_there_is_no_other_to_ask(stand: Stand) -> None:
    await stand.serve("r1")
    await stand.programs["r1"].control(fail="500", times=1)
    status, body, _ = await stand.ask()
    assert (status, body["error"]["message"]) == (500, "it broke")


async def test_a_request_that_a_replica_refuses_for_its_content_is_passed_on(stand: Stand) -> None:
    await stand.serve("r1", "r2")
    async with stand.post(max_tokens="many") as response:
        assert response.status == 400
    assert stand.metric("corral_gateway_requests_total", deployment="chat", code="400") == 1


async def test_a_request_waits_while_nothing_is_routable(stand: Stand) -> None:
    await stand.serve("r1")
    program = stand.programs["r1"]
    await program.kill()
    await stand.stands(Standing.REFUSED, "r1")
    waiting = asyncio.create_task(stand.ask())
    await stand.until(lambda: stand.metric("corral_gateway_held_requests", deployment="chat") == 1, "held")
    await program.start()
    assert (await waiting)[0] == 200


async def test_a_request_that_waited_too_long_is_told_when_to_come_again(stand: Stand) -> None:
    stand.hold_s = 0.3
    await stand.serve("r1")
    await stand.programs["r1"].kill()
    async with stand.post() as response:
        assert response.status == 503
        assert int(response.headers["Retry-After"]) >= 1
        assert (await response.json())["error"]["code"] == "no_replica"


async def test_a_client_that_leaves_while_it_waits_is_let_go(stand: Stand) -> None:
    await stand.serve("r1")
    await stand.programs["r1"].kill()
    await stand.stands(Standing.REFUSED, "r1")
    waiting = asyncio.create_task(stand.ask())
    await stand.until(lambda: stand.metric("corral_gateway_held_requests", deployment="chat") == 1, "held")
    waiting.cancel()
    await stand.until(lambda: stand.metric("corral_gateway_held_requests", deployment="chat") == 0, "let go")


async def test_a_client_that_leaves_frees_the_replica(stand: Stand) -> None:
    await stand.serve("r1", rate=50.0)
    async with stand.post(stream=True, max_tokens=100_000) as response:
        await response.content.readline()
        assert await stand.programs["r1"].open_requests() == 1
        response.close()
    left = {"deployment": "chat", "code": "499"}
    await stand.until(lambda: stand.metric("corral_gateway_requests_total", **left) == 1, "counted")
    async with asyncio.timeout(60):
        while await stand.programs["r1"].open_requests():
            await asyncio.sleep(0.02)
    assert stand.metric("corral_gateway_in_flight_requests", deployment="chat", replica="r1") == 0


@pytest.mark.parametrize("fail", ["die", "exit_midway"])
async def test_a_stream_whose_replica_dies_ends_with_an_error_and_is_counted(stand: Stand, fail: str) -> None:
    await stand.serve("r1")
    await stand.programs["r1"].control(fail=fail, after=3, times=1)
    async with stand.post(stream=True, max_tokens=50) as response:
        events = (await response.text()).split("\n\n")
    assert len(events) == 3 + 1 + 1
    assert json.loads(events[3].removeprefix("data: "))["error"]["code"] == "stream_broken"
    assert "data: [DONE]" not in events
    assert stand.metric("corral_gateway_streams_broken_total", deployment="chat") == 1


async def test_an_unknown_model_is_named_with_those_that_are_served(stand: Stand) -> None:
    await stand.serve("r1")
    status, body, _ = await stand.ask(model="gpt-9")
    assert (status, body["error"]["code"]) == (404, "model_not_found")
    assert "chat" in body["error"]["message"]
    assert stand.metric("corral_gateway_requests_total", deployment="unknown", code="404") == 1


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"messages": []}', b'{"model": 7}'])
async def test_a_body_that_is_no_request_is_refused(stand: Stand, raw: bytes) -> None:
    await stand.serve("r1")
    async with stand.session.post(f"{stand.url}/v1/completions", data=raw) as response:
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "invalid_request_error"


async def test_the_models_are_the_deployments(stand: Stand) -> None:
    await stand.start("p1", deployment="pair")
    await stand.serve("r1")
    async with stand.session.get(f"{stand.url}/v1/models") as response:
        assert [model["id"] for model in (await response.json())["data"]] == ["chat", "pair"]


async def test_it_serves_without_its_controller_and_after_a_restart_from_its_disk(stand: Stand) -> None:
    await stand.serve("r1", "r2")
    await stand.controller.stop()
    assert (await stand.ask())[0] == 200
    stand._hurry.set()
    await stand.stop()
    await stand.open()
    assert (await stand.ask())[0] == 200
    assert stand.metric("corral_gateway_controller_up") == 0


async def test_a_controller_that_forgets_replicas_is_not_believed_while_they_answer(stand: Stand) -> None:
    await stand.serve("r1")
    stand.controller.replicas = []
    polls = stand.gateway.board
    await stand.until(lambda: polls.table.entries["r1"].answered_at > polls.now() - 0.5, "probed")
    await stand.gateway._roster.poll()
    assert (await stand.ask())[0] == 200


async def test_a_replica_that_the_controller_lists_as_stopped_is_dropped(stand: Stand) -> None:
    await stand.serve("r1", "r2")
    stand.controller.replicas = stand.listing("r1") + stand.listing("r2", state="stopped")
    await stand.stands(None, "r2")
    assert {(await stand.ask(say=str(number)))[2] for number in range(6)} == {"r1"}


async def test_below_the_panic_floor_fenced_replicas_are_used(stand: Stand) -> None:
    await stand.serve("r1", "r2", "r3")
    await stand.programs["r1"].fence()
    await stand.stands(Standing.FENCED, "r1")
    assert stand.metric("corral_gateway_panic", deployment="chat") == 0
    await stand.programs["r2"].fence()
    await stand.stands(Standing.FENCED, "r2")
    assert stand.metric("corral_gateway_panic", deployment="chat") == 1
    await stand.programs["r3"].kill()
    status, _, replica = await stand.ask()
    assert (status, replica in {"r1", "r2"}) == (200, True)
    assert stand.metric("corral_gateway_panic_requests_total", deployment="chat") >= 1


async def test_a_client_cannot_call_a_panic(stand: Stand) -> None:
    stand.hold_s = 0.2
    await stand.serve("r1", "r2")
    await stand.programs["r1"].fence()
    await stand.stands(Standing.FENCED, "r1")
    headers = {"x-corral-panic": "1"}
    body = {"model": "chat", "messages": []}
    async with stand.session.post(f"{stand.url}/v1/chat/completions", json=body, headers=headers) as response:
        assert response.headers["x-corral-replica"] == "r2"


async def test_a_frozen_replica_is_left_and_its_request_asked_elsewhere(stand: Stand) -> None:
    await stand.serve("r1", "r2", kind=ReplicaProgram)
    asks = [asyncio.create_task(stand.ask(max_tokens=100)) for _ in range(4)]
    await stand.until(lambda: sum(stand.gateway.board.outstanding.values()) == 4, "under way")
    stand.programs["r1"].send(signal.SIGSTOP)
    assert {(await each)[0] for each in asks} == {200}
    stand.programs["r1"].send(signal.SIGCONT)
    await stand.stands(Standing.READY, "r1")


async def test_a_stop_lets_streams_end_and_takes_nothing_new(stand: Stand) -> None:
    await stand.serve("r1", rate=100.0)
    async with stand.post(stream=True, max_tokens=60) as response:
        await response.content.readline()
        stopping = stand.stop()
        rest = await response.text()
    assert rest.endswith("data: [DONE]\n\n")
    await stopping


async def test_a_stop_sends_busy_clients_away_from_the_connection_that_they_keep(stand: Stand) -> None:
    await stand.serve("r1", rate=100.0)
    async with stand.post(stream=True, max_tokens=300) as long:
        await long.content.readline()
        async with stand.post(max_tokens=2) as kept:
            await kept.read()
        stopping = stand.stop()
        closes = False
        while not closes:
            async with stand.post(max_tokens=2) as last:
                assert last.status == 200
                closes = last.headers.get("Connection") == "close"
        with pytest.raises(aiohttp.ClientConnectionError):
            await stand.post(max_tokens=2)
        assert (await long.text()).endswith("data: [DONE]\n\n")
    await stopping


async def test_its_metrics_have_rows_and_its_readiness_says_why(stand: Stand) -> None:
    await stand.open()
    async with stand.session.get(f"{stand.url}/readyz") as response:
        assert (response.status, (await response.json())["reason"]) == (503, "no replica list yet")
    async with stand.session.get(f"{stand.url}/metrics") as response:
        assert "corral_gateway_build_info" in await response.text()
