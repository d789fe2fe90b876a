"""What a Prometheus gets, whatever formats it says it takes."""

import aiohttp
import pytest
from aiohttp import web

from vocab.metrics import ENGINE
from wire.exposition import Exposition
from wire.server import make_app

# What Prometheus 2.42 and 3.5 send.
ACCEPTS = (
    "",
    (
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    ),
    (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    ),
)


@pytest.mark.parametrize("accept", ACCEPTS)
async def test_names_with_a_colon_reach_prometheus_as_they_are(accept: str) -> None:
    exposition = Exposition(ENGINE)
    exposition.counter("vllm:generation_tokens_total").labels("chat", "0").inc(7)
    app: web.Application = make_app(ready=lambda: (True, ""), metrics=exposition)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept}) as response,
        ):
            text = await response.text()
    finally:
        await runner.cleanup()
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'vllm:generation_tokens_total{engine="0",model_name="chat"} 7.0' in text.splitlines()
