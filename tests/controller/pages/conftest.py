"""One controller with a fleet that has seen a fault, and one browser, for all tests of the pages."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from controller.config import DeploymentConfig
from controller.deciding.mind import real_core
from tests.controller.house import House, event, house, uuid
from tests.controller.node import Node, fence
from tests.programs import need
from vocab.messages import GpuStatus, ReplicaStatus
from vocab.observations import GpuSample, Member, Owner
from vocab.readings import Readings

PATIENCE_MS = 60_000  # of a loaded machine
expect.set_options(timeout=PATIENCE_MS)

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
BUSY = Readings(
    utilization_ratio=1.0,
    sm_active_ratio=0.12,
    dram_active_ratio=0.05,
    temperature_c=61.0,
    slowdown_c=87.0,
    power_w=402.0,
    power_limit_w=700.0,
    memory_used_bytes=61 * 2**30,
    memory_total_bytes=80 * 2**30,
)
AT_REST = Readings(
    utilization_ratio=0.0,
    sm_active_ratio=0.0,
    dram_active_ratio=0.0,
    temperature_c=34.0,
    power_w=71.0,
    power_limit_w=700.0,
    memory_used_bytes=2**30,
    memory_total_bytes=80 * 2**30,
)
FOUND = ReplicaStatus(
    replica="vllm.service:8000@n1", deployment="llama", phase="ready", ready=True, admitting=True, observed=True,
    members=(Member(node="n1", gpu=uuid(6)), Member(node="n1", gpu=uuid(7), rank=1)), engine="vllm", model="llama",
    owner=Owner(kind="systemd-unit", name="vllm.service", uid=1000),
)  # fmt: skip
MASTER = "s3cret"


class Rack(Node):
    """A node of named boards, one of which cannot be read any more."""

    def __init__(self, home: House, address: str) -> None:
        super().__init__(home)
        gpus = tuple(
            replace(gpu, name="NVIDIA H100 80GB HBM3", serial=f"16500{gpu.index:05d}") for gpu in self.facts.gpus
        )
        self.facts = replace(self.facts, address=address, gpus=gpus)
        self.readings = {gpu.uuid: AT_REST for gpu in gpus} | {uuid(5): BUSY}
        self.lost = ""

    def samples(self) -> tuple[GpuStatus, ...]:
        return tuple(
            GpuStatus(gpu=each.gpu, at=each.at, error="GPU_IS_LOST") if each.gpu == self.lost else each
            for each in super().samples()
        )


class Site:
    """What the tests share. ``gpu`` is the one that fell off the bus; 6 and 7 are others', 5 is busy."""

    def __init__(self, home: House, node: Node, browser: Browser, gpu: str) -> None:
        self.home = home
        self.node = node
        self.gpu = gpu
        self.browser = browser
        self.tokens = {"admin": MASTER}
        self._states: dict[str, object] = {}

    async def context(self, role: str = "admin", **options: object) -> BrowserContext:
        """A browser in which this role has signed in."""
        if role not in self._states:
            first = await self.browser.new_context()
            page = await first.new_page()
            await page.goto(self.home.base + "/sign-in")
            await page.fill("[name=token]", self.tokens[role])
            await page.click("button.main")
            await page.wait_for_selector("h1 >> text=Fleet")
            self._states[role] = await first.storage_state()
            await first.close()
        return await self.browser.new_context(
            storage_state=self._states[role], **{"viewport": {"width": 1280, "height": 800}, **options}
        )

    @asynccontextmanager
    async def page(self, path: str, role: str = "admin", **options: object) -> AsyncIterator[Page]:
        """A page that is open; whatever goes wrong on it fails the test."""
        context = await self.context(role, **options)
        wrong: list[str] = []
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        try:
            await page.goto(self.home.base + path)
            yield page
        finally:
            await context.close()
        assert wrong == []


def recording(now: float) -> bytes:
    """What an agent would have recorded of GPU 5: an hour at work, with a gap."""
    samples = (
        GpuSample(
            at=now - 3500.0 + 20.0 * step,
            gpu=uuid(5),
            readings=replace(BUSY, power_w=380.0 + step % 7, temperature_c=55.0 + step % 5),
        )
        for step in range(175)
        if not 60 < step < 75
    )
    return b"".join(msgspec.json.encode(sample) + b"\n" for sample in samples)


@asynccontextmanager
async def agent() -> AsyncIterator[str]:
    """What answers where the node's agent would: its recording, and nothing else. Its address."""

    async def told(_: web.Request) -> web.Response:
        return web.Response(body=recording(time.time()))

    app = web.Application()
    app.router.add_get("/api/v1/recording", told)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def reporting(node: Node) -> None:
    while True:
        await node.send()
        await asyncio.sleep(1.0)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    program = need("chromium", "apt-get install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def standing(place: Path) -> AsyncIterator[Site]:
    """The controller, its fleet and the browser, as long as the block lasts; what it stores goes to ``place``."""
    deployments = (DeploymentConfig(name="chat", replicas=2, model="smollm2"),)
    (place / "token").write_text(MASTER)
    (place / "token").chmod(0o600)
    async with (
        agent() as address,
        house(
            place / "state",
            make_core=real_core,
            deployments=deployments,
            token_file=str(place / "token"),
            gateways=("10.0.0.9:7420",),
        ) as home,
        chromium() as browser,
    ):
        node = Rack(home, address)
        await node.send()
        desired = await node.settle()
        gpu = desired.replicas[0].members[0].gpu
        seen = event(1, gpu=int(gpu.removeprefix("GPU-"), 16), text="GPU has fallen off the bus")
        node.lost = gpu
        await node.send(seen, fence(seen))
        await node.settle()
        node.replicas = (*node.replicas, FOUND)
        made = Site(home, node, browser, gpu)
        for role in ("viewer", "operator"):
            issued = await home.post("tokens", {"name": role, "role": role, "reason": "a test"})
            made.tokens[role] = issued["secret"]
        reports = asyncio.create_task(reporting(node))
        yield made
        reports.cancel()
        await asyncio.wait([reports])


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with standing(tmp_path_factory.mktemp("pages")) as made:
        yield made
