"""A dcgm-exporter as a source: a real HTTP server prints pages, the clock is virtual."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.judge import Judge
from agent.sources.exporter import ALONE_AFTER_S, FRESH_S, STALE_S, ExporterSource
from agent.sources.exporter_page import read_page
from tests.agent.sources.collector import Collector, running
from tests.agent.sources.test_exporter_page import A, B, line
from vocab.clock import SystemClock, VirtualClock
from vocab.messages import EventItem
from vocab.observations import DriverEvent, GpuSample, KernelRecord, NodeSeen, SourceState
from vocab.readings import Readings


class Page:
    """What the exporter answers; ``status`` or ``text`` may be changed."""

    def __init__(self) -> None:
        self.status = 200
        self.text = ""

    async def answer(self, request: web.Request) -> web.Response:
        return web.Response(status=self.status, text=self.text)


@pytest.fixture
async def served() -> AsyncIterator[tuple[Page, str]]:
    page, app = Page(), web.Application()
    app.router.add_get("/metrics", page.answer)
    server = TestServer(app)
    await server.start_server()
    yield page, str(server.make_url("/metrics"))
    await server.close()


def written(
    *, energy: float = 5_000.0, xid: int = 0, utilization: float = 100.0, uuids: tuple[str, ...] = (A, B)
) -> str:
    figures = {
        "DCGM_FI_DEV_GPU_TEMP": 41, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": energy, "DCGM_FI_DEV_XID_ERRORS": xid,
        "DCGM_FI_DEV_GPU_UTIL": utilization, "DCGM_FI_PROF_SM_ACTIVE": 0.75, "DCGM_FI_DEV_FB_USED": 100,
        "DCGM_FI_DEV_FB_FREE": 924, "DCGM_FI_DEV_SM_CLOCK": 1980, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": 12,
    }  # fmt: skip
    more = ',pci_bus_id="00000000:5D:00.0",DCGM_FI_DRIVER_VERSION="580.95.05"'
    return "\n".join(line(name, value, uuid, more) for uuid in uuids for name, value in figures.items()) + "\n"


class Beside:
    """The source without its server: pages are handed to it, time is moved."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1_000.0)
        self.source = ExporterSource("n1", "http://127.0.0.1:1/metrics", self.clock)
        self.found = Collector()
        self.source._emit = self.found.emit

    def page(self, text: str, after_s: float = 15.0) -> None:
        self.clock.advance(after_s)
        self.source.take(read_page(text))

    def completed(self, **readings: float) -> Readings:
        sample = GpuSample(at=self.clock.now(), node="n1", gpu=A, readings=Readings(**readings), source="nvml")
        done = self.source.complete(sample)
        assert isinstance(done, GpuSample)
        assert done.readings is not None
        return done.readings

    @property
    def state(self) -> tuple[str, str]:
        last = self.found.all(SourceState)[-1]
        return last.state, (last.error or "").partition(":")[0]


async def test_an_exporter_that_answers_is_up_and_one_that_does_not_is_down(served):
    page, url = served
    page.text = written()
    async with running(ExporterSource("n1", url, SystemClock(), period_s=0.02)) as found:
        assert (await found.find(SourceState)).state == "up"
        page.status = 503
        down = await found.find(SourceState, lambda one: one.state == "down")
        assert (down.error or "").startswith("UNREACHABLE: ")
        page.status = 200
        await found.find(SourceState, lambda one: one.state == "up", after=found.seen.index(down))


async def test_no_exporter_is_a_source_that_is_down_and_nothing_else():
    async with running(ExporterSource("n1", "http://127.0.0.1:1/metrics", SystemClock())) as found:
        assert (await found.find(SourceState)).state == "down"
        assert len(found.seen) == 1


async def test_a_page_without_end_is_not_read_to_its_end(served):
    page, url = served
    page.text = "x" * 2048
    async with running(ExporterSource("n1", url, SystemClock(), most_bytes=1024)) as found:
        assert "longer than" in ((await found.find(SourceState)).error or "")


def test_what_nvml_has_never_given_comes_from_the_page():
    beside = Beside()
    beside.page(written())
    readings = beside.completed(temperature_c=50.0, utilization_ratio=1.0)
    assert readings.temperature_c == 50.0
    assert readings.sm_active_ratio == 0.75
    assert readings.sm_clock_hz == 1.98e9
    assert readings.memory_used_bytes == 100 * 2**20
    assert readings.memory_total_bytes == 1024 * 2**20
    assert readings.energy_j == 5.0


def test_what_nvml_has_given_once_is_never_taken_from_the_page():
    beside = Beside()
    beside.page(written())
    beside.completed(energy_j=7.0)
    beside.page(written(energy=6_000.0))
    assert beside.completed().energy_j is None, "an older figure of a counter would look like its restart"


def test_what_was_read_once_counts_once():
    beside = Beside()
    beside.page(written())
    assert beside.completed().sm_active_ratio == 0.75
    assert beside.completed().sm_active_ratio is None
    beside.page(written(energy=6_000.0))
    assert beside.completed().sm_active_ratio == 0.75


def test_activity_of_another_time_than_the_work_is_left_out():
    beside = Beside()
    beside.page(written(utilization=0.0))
    assert beside.completed(utilization_ratio=1.0).sm_active_ratio is None
    beside.page(written(utilization=100.0))
    assert beside.completed(utilization_ratio=0.9).sm_active_ratio == 0.75


def test_a_page_that_came_too_long_ago_is_not_shown():
    beside = Beside()
    beside.page(written())
    beside.clock.advance(FRESH_S + 1)
    assert beside.completed().sm_active_ratio is None


def test_a_page_that_repeats_itself_is_stale():
    beside = Beside()
    for _ in range(int(STALE_S // 15) + 2):
        beside.page(written())
    assert beside.state == ("degraded", "STALE")
    assert beside.completed().sm_active_ratio is None
    beside.page(written(energy=5_001.0))
    assert beside.state == ("up", "")
    assert beside.completed().sm_active_ratio == 0.75


def test_a_gpu_that_vanished_from_the_page_is_named_and_has_no_figures():
    beside = Beside()
    beside.page(written())
    beside.page(written(energy=6_000.0, uuids=(B,)))
    assert beside.state == ("degraded", "GPU_GONE")
    beside.clock.advance(FRESH_S)
    assert beside.completed().sm_active_ratio is None


def test_a_page_without_gpus_is_no_proof_that_there_are_none():
    beside = Beside()
    beside.page("go_goroutines 12\n")
    assert beside.state == ("down", "NO_DATA")


def test_the_xid_that_stands_there_at_first_is_history_and_a_change_is_an_event():
    beside = Beside()
    beside.page(written(xid=79))
    beside.page(written(xid=79))
    assert not beside.found.all(DriverEvent)
    beside.page(written(xid=0))
    beside.page(written(xid=48))
    assert [(one.gpu, one.type, one.data) for one in beside.found.all(DriverEvent)] == [(A, "xid", 48), (B, "xid", 48)]


def test_without_nvml_the_page_stands_alone():
    beside = Beside()
    beside.page(written(), ALONE_AFTER_S)
    (sample, _) = beside.found.all(GpuSample)
    assert (sample.gpu, sample.source) == (A, "exporter")
    assert sample.readings is not None
    assert sample.readings.temperature_c == 41.0
    inventory = beside.source.complete(NodeSeen(at=1.0, node="n1", boot_id="b"))
    assert isinstance(inventory, NodeSeen)
    assert (inventory.gpus[0].uuid, inventory.gpus[0].index, inventory.gpus[0].pci) == (A, 3, "0000:5d:00")


def test_a_collection_that_stands_on_the_page_twice_is_one_sign_of_life():
    beside = Beside()
    beside.page(written(), ALONE_AFTER_S)
    beside.page(written())
    assert len(beside.found.all(GpuSample)) == 2
    beside.page(written(energy=6_000.0))
    assert len(beside.found.all(GpuSample)) == 4


def test_beside_nvml_the_page_never_stands_alone():
    beside = Beside()
    beside.completed(temperature_c=50.0)
    beside.page(written(), ALONE_AFTER_S * 2)
    assert not beside.found.all(GpuSample)


SOURCES = {"e": "exporter", "n": "nvml"}
XID_LINE = "NVRM: Xid (PCI:0000:5d:00): 48, pid=12, name=python, DBE (double bit error)"


def judged(*told: tuple[float, str]) -> list[str]:
    """What a judge makes of a kernel line (k), NVML's event (n) and the exporter's word (e): codes and counts."""
    judge, items = Judge("n1", "b"), []
    node = NodeSeen(at=0.0, node="n1", boot_id="b", gpus=())
    judge.observe(node, 0.0)
    for at, what in told:
        seen = (
            KernelRecord(at=at, node="n1", line=XID_LINE, seq=int(at), kernel_s=at, facility=0)
            if what == "k"
            else DriverEvent(at=at, node="n1", source=SOURCES[what], pci="0000:5d:00", type="xid", data=48)
        )
        items += judge.tick(at)
        items += judge.observe(seen, at)
    items += judge.tick(told[-1][0] + 30.0)
    events = {item.event.id: item.event for item in items if isinstance(item, EventItem)}
    return [f"{event.code} {event.source} {event.count}" for event in events.values() if event.code.startswith("xid:")]


def test_the_exporters_word_of_what_the_log_has_told_before_is_nothing_new():
    assert judged((10.0, "k"), (30.0, "e")) == ["xid:48 kernel 1"]
    assert judged((10.0, "k"), (90.0, "e")) == ["xid:48 kernel 1"]


def test_the_exporters_word_of_what_the_driver_has_told_before_is_nothing_new():
    assert judged((10.0, "n"), (40.0, "e")) == ["xid:48 nvml 1"]


def test_the_exporters_word_alone_becomes_an_event():
    assert judged((10.0, "e")) == ["xid:48 exporter 1"]
