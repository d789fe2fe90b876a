"""What a Prometheus says of GPUs and engines; here one that answers from a table."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from corral.survey.fleet import Fleet
from corral.survey.metrics import Metrics, used
from vocab.errors import Unreachable
from vocab.events import epoch_s

NOW = 1_796_000_000.0
VALUES = {  # by metric, of a GPU that computes, one that only looks busy, and one that idles
    "DCGM_FI_DEV_GPU_UTIL": (99.0, 100.0, 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": (0.9, 0.04, 0.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": (0.2, 0.02, 0.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (0.6, 0.01, 0.0),
    "DCGM_FI_DEV_POWER_USAGE": (650.0, 300.0, 70.0),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": (0.0, 0.0, 1.0),
}


def labels(number: int) -> dict[str, str]:
    return {"UUID": f"GPU-{number}", "gpu": str(number), "Hostname": "n1", "modelName": "NVIDIA H100 80GB HBM3"}


LAST = {0: 31, 3: 13, 5: 79, 40: 79, 60: 0, 61: 79}  # the gauge of GPU-1: from which minute of the second day on


def shown(start: float) -> list[list[object]]:
    return [[start + 60 * minute, str(LAST[max(each for each in LAST if each <= minute)])] for minute in range(90)]


async def answer(request: web.Request) -> web.Response:
    query = request.query["query"]
    rows = []
    if "DCGM_FI_DEV_XID_ERRORS" in query:
        gauge = {"metric": labels(1) | {"err_code": "79"}, "values": [] if "by (" in query else shown(NOW - 86_400)}
        second = request.query["time"] == f"{NOW:.0f}"
        return web.json_response({"status": "success", "data": {"result": [gauge] if second else []}})
    if "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" in query:
        fell = [{"metric": labels(number), "values": [[NOW - 43_200, "1"]]} for number in (0, 1)]
        return web.json_response({"status": "success", "data": {"result": fell}})
    for name, values in VALUES.items():
        if re.search(rf"[\"|]{name}[\"|]", query):
            rows += [{"metric": labels(number), "values": points(request, value), "value": [NOW, str(value)]}
                     for number, value in enumerate(values)]  # fmt: skip
    if "vllm:num_requests_running" in query:
        rows = [{"metric": {"instance": "n1:8000", "model_name": "chat"}, "values": points(request, 0.0)}]
    return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": rows}})


def points(request: web.Request, value: float) -> list[list[object]]:
    if "start" not in request.query:
        return []
    start, end = float(request.query["start"]), float(request.query["end"])
    step = float(request.query["step"].removesuffix("s"))
    return [[start + n * step, str(value)] for n in range(int((end - start) // step) + 1)]


@pytest.fixture
async def metrics() -> AsyncIterator[Metrics]:
    app = web.Application()
    app.router.add_get("/api/v1/query_range", answer)
    app.router.add_get("/api/v1/query", answer)
    async with TestServer(app) as server:
        yield await used(f"http://127.0.0.1:{server.port}", NOW, 2.0, lambda *_: None)


async def test_each_gpu_has_its_word_for_its_whole_time(metrics: Metrics) -> None:
    seconds = metrics.usage.seconds
    assert seconds["compute-bound"] == seconds["launch-bound"] == seconds["idle"] == pytest.approx(2 * 86_400)


async def test_one_that_only_looks_busy_is_named_before_one_that_idles(metrics: Metrics) -> None:
    assert [(each.gpu.gpu, each.word) for each in metrics.usage.worst] == [("GPU-1", "launch-bound"), ("GPU-2", "idle")]


async def test_a_remap_that_failed_is_judged_as_the_agent_would(metrics: Metrics) -> None:
    assert [(event.gpu, event.code) for event in metrics.events if event.severity != "info"] == [
        ("GPU-2", "remap_failed")
    ]


async def test_a_change_of_the_gauge_of_xids_is_one_that_a_boot_ends(metrics: Metrics) -> None:
    told = [(event.gpu, event.code, round(epoch_s(event.at or "") - (NOW - 86_400))) for event in metrics.xids]
    assert told == [("GPU-1", "xid:13", 180), ("GPU-1", "xid:79", 300), ("GPU-1", "xid:79", 3660)]
    assert metrics.boots == {"n1": [NOW - 43_200]}
    made = Fleet((), metrics.boards, began=metrics.boots)
    said = [(at, one.boot_id) for at, one in made.said(metrics.xids)]
    assert [boot for _, boot in said] == ["n1, before"] * 3 + [f"n1, from {NOW - 43_200:.0f}"]


async def test_an_engine_without_requests_is_empty(metrics: Metrics) -> None:
    (engine,) = metrics.usage.engines
    assert (engine.engine, engine.model, engine.empty) == ("n1:8000", "chat", 1.0)


async def test_a_prometheus_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        await used("http://127.0.0.1:9", NOW, 1.0, lambda *_: None)


async def test_a_prometheus_is_shown_its_own_token_and_never_corrals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: set[str | None] = set()

    async def ask(request: web.Request) -> web.Response:
        shown.add(request.headers.get("Authorization"))
        return await answer(request)

    for name in ("CORRAL_TOKEN_FILE", "CORRAL_PROMETHEUS_TOKEN_FILE"):
        (tmp_path / name).write_text(f"of-{name}")
        (tmp_path / name).chmod(0o600)
        monkeypatch.setenv(name, str(tmp_path / name))
    app = web.Application()
    app.router.add_get("/api/v1/{route}", ask)
    async with TestServer(app) as server:
        await used(f"http://127.0.0.1:{server.port}", NOW, 1.0, lambda *_: None)
    assert shown == {"Bearer of-CORRAL_PROMETHEUS_TOKEN_FILE"}
