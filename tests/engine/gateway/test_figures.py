"""The gateway goes by what it sees itself: an engine's own figures neither count requests nor keep it from work."""

from collections import Counter

from aiohttp import web

from engine.gateway.board import Board
from engine.gateway.export import Export
from engine.gateway.table import Listed, Standing
from tests.engine.gateway.stand import Stand
from vocab.clock import SystemClock

STALE = 'vllm:num_requests_running{engine="0"} 37.0\nvllm:kv_cache_usage_perc{engine="0"} 0.99\n'


async def _idle(_: web.Request) -> web.Response:
    return web.json_response({"choices": [{"message": {"content": "t"}}]})


async def _well(_: web.Request) -> web.Response:
    return web.Response()


async def _stale(_: web.Request) -> web.Response:
    return web.Response(text=STALE)


async def test_a_cache_gauge_that_never_moves_keeps_no_idle_replica_out(stand: Stand) -> None:
    app = web.Application()
    app.router.add_get("/health", _well)
    app.router.add_get("/metrics", _stale)
    app.router.add_post("/v1/chat/completions", _idle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        await stand.start("r2")
        [other] = stand.listing()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        stand.controller.replicas = [other, {**other, "replica": "r1", "url": url, "kv_ratio": 0.99, "running": 37}]
        await stand.controller.start()
        await stand.open()
        await stand.stands(Standing.READY, "r1", "r2")
        answers = [await stand.ask(say=str(number), max_tokens=1) for number in range(40)]
        assert {status for status, _, _ in answers} == {200}
        taken = Counter(replica for _, _, replica in answers)
        assert min(taken["r1"], taken["r2"]) >= 8  # as idle as the other, it takes its share
    finally:
        await runner.cleanup()


def test_good_left_and_bad_answers_are_counted_by_the_status_that_the_client_saw() -> None:
    export = Export("1")
    Board(SystemClock(), export.follow).list([Listed(replica="r1", deployment="chat")])
    for code, count in {200: 3918, 499: 4142, 502: 40}.items():
        for _ in range(count):
            export.answered("chat", code, 0.1)
    value = export.exposition.registry.get_sample_value
    name = "corral_gateway_requests_total"
    assert [value(name, {"deployment": "chat", "code": code}) for code in ("200", "499", "502")] == [3918, 4142, 40]
    assert value("corral_gateway_request_duration_seconds_count", {"deployment": "chat"}) == 8100
    under_way = [family for family in export.exposition.registry.collect() if "in_flight" in family.name]
    assert [sample for family in under_way for sample in family.samples] == []  # nothing is left over as running
