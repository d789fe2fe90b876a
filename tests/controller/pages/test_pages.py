"""The pages in a real browser, over a real controller: what a person on call sees and does."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Locator, Page, async_playwright, expect

from controller.config import DeploymentConfig
from controller.deciding.mind import real_core
from tests.controller.house import RAW, House, batch, house, uuid
from tests.controller.node import break_gpu
from tests.programs import need
from vocab.messages import ReplicaStatus
from vocab.observations import Member, Owner
from vocab.readings import Readings

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DEPLOYMENTS = (DeploymentConfig(name="chat", replicas=2, model="smollm2"),)
BUSY = Readings(
    utilization_ratio=1.0,
    sm_active_ratio=0.12,
    dram_active_ratio=0.05,
    temperature_c=61.0,
    power_w=402.0,
    power_limit_w=700.0,
    memory_used_bytes=61 * 2**30,
    memory_total_bytes=80 * 2**30,
)


@asynccontextmanager
async def browser_page(**options: object) -> AsyncIterator[Page]:
    """A page whose errors fail the test."""
    chromium = need("chromium", "apt-get install chromium")
    wrong: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            page = await browser.new_page(viewport={"width": 1366, "height": 768}, **options)
            page.set_default_timeout(20_000)
            page.on("pageerror", lambda error: wrong.append(str(error)))
            page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
            yield page
        finally:
            await browser.close()
    assert wrong == []


async def answer(page: Page, reason: str) -> None:
    """Answer the page's question."""
    await page.fill("#ask-value", reason)
    await page.click("#ask-yes")


def card(page: Page, index: int) -> Locator:
    return page.locator(".gpu").filter(has=page.get_by_text(f"GPU {index}", exact=True))


async def test_fleet_page_shows_the_fault_and_follows_orders_live(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home, browser_page() as page:
        node, gpu = await break_gpu(home)
        node.readings[uuid(5)] = BUSY
        await node.send()
        await page.goto(home.base + "/")
        await _shows_the_fleet(page)
        await _shows_the_incident(page)
        await _follows_orders(page, home)
        assert gpu == uuid(0)


async def _shows_the_fleet(page: Page) -> None:
    await expect(page.locator(".banner.virtual")).to_contain_text("VIRTUAL no real GPU")
    await expect(page.locator(".gpu")).to_have_count(8)
    await expect(page.locator("#deployments")).to_contain_text("2 / 2 ready")
    await expect(card(page, 0).locator(".tag.hold")).to_contain_text("policy: xid:79")
    busy = card(page, 5)
    await expect(busy.locator(".meter").nth(0)).to_have_text("util100 %")
    await expect(busy.locator(".meter").nth(1)).to_have_text("SM active12 %")
    await expect(busy.locator(".meter").nth(2)).to_have_text("memory61 GiB")
    await expect(busy.locator(".figures")).to_have_text("61 °C402 / 700 W")
    await expect(busy.locator(".activity")).to_have_text("launch-bound: 12% of the chip used")
    await expect(busy.locator(".bar").nth(1)).to_have_attribute("style", re.compile("12%"))


async def _shows_the_incident(page: Page) -> None:
    await expect(page.locator("#waiting")).to_contain_text("reboot_node")
    await page.click("#incidents .incident > button")
    await expect(page.locator("#incidents .proof").first).to_have_text(RAW)
    await expect(page.locator("#incidents .lines li").last).to_contain_text("reboot_node waiting")


async def _follows_orders(page: Page, home: House) -> None:
    hold = await home.post("holds", {"subject": {"gpu": uuid(6)}, "reason": "fan noise"})
    await expect(card(page, 6).locator(".word")).to_have_text("cordoned")
    await home.call("DELETE", f"/api/v1/holds/{hold['id']}", object, {"reason": "fixed"})
    await expect(card(page, 6).locator(".tag.hold")).to_have_count(0)
    await page.click("#pause")
    await answer(page, "change freeze")
    await expect(page.locator(".banner.paused")).to_contain_text("PAUSED")
    assert (await home.get("audit"))[-1]["reason"] == "change freeze"
    await page.click(".banner.paused button")
    await answer(page, "done")
    await expect(page.locator(".banner.paused")).to_have_count(0)


async def test_gpu_page_tells_the_story_and_lifts_a_hold(tmp_path: Path) -> None:
    async with house(tmp_path) as home, browser_page(color_scheme="dark") as page:
        await home.post("agent/batch", batch())
        await page.goto(f"{home.base}/gpus/{uuid(1)}")
        await expect(page.locator("#name")).to_have_text("n1 · GPU 1")
        await expect(page.locator("#story")).to_contain_text("Nothing has happened yet.")
        await page.click("#hold")
        await answer(page, "burn-in <b>test</b>")
        await expect(page.locator("#story li")).to_contain_text("hold placed by operator: burn-in <b>test</b>")
        await page.click("#lifts button")
        await answer(page, "passed")
        await expect(page.locator("#story li")).to_have_count(2)
        assert await home.get("holds") == []


async def test_page_asks_for_the_token_and_then_shows_the_fleet(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(0o600)
    async with house(tmp_path / "state", token_file=str(token)) as home, browser_page() as page:
        await home.post("agent/batch", batch())
        await page.goto(home.base + "/")
        await answer(page, "s3cret")
        await expect(page.locator(".gpu")).to_have_count(2)
        await expect(page.locator("#link")).to_have_text("live")


async def test_an_engine_that_was_found_is_shown_with_its_owner_model_and_gpus(tmp_path: Path) -> None:
    found = ReplicaStatus(
        replica="vllm.service:8000@n1", deployment="llama", phase="ready", ready=True, admitting=True, observed=True,
        members=(Member(node="n1", gpu=uuid(0)), Member(node="n1", gpu=uuid(1), rank=1)), engine="vllm", model="llama",
        owner=Owner(kind="systemd-unit", name="vllm.service", uid=1000),
    )  # fmt: skip
    async with house(tmp_path, make_core=real_core) as home, browser_page() as page:
        await home.post("agent/batch", batch(replicas=(found,)))
        await page.goto(home.base + "/")
        await expect(page.locator("#observed .item")).to_have_count(1)
        for told in (
            "vllm.service:8000@n1",
            "ready",
            "vllm serves llama on GPU 0, GPU 1",
            "unit vllm.service, uid 1000",
        ):
            await expect(page.locator("#observed")).to_contain_text(told)
        await expect(page.locator("#observed")).to_contain_text("observed: Corral never signals it")
        await expect(card(page, 1).locator(".tag.replica")).to_have_text("▶ vllm.service:8000@n1")
