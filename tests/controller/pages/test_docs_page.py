"""The API's own page in a real browser: every route is there, and what is asked there is really asked."""

from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.controller.house import batch, house, uuid
from tests.controller.pages.test_pages import browser_page


async def test_every_route_is_there_to_be_read(tmp_path: Path) -> None:
    async with house(tmp_path) as home, browser_page() as page:
        served = await home.call("GET", "/openapi.json", Any)
        await page.goto(home.base + "/docs")
        await expect(page.locator("#link")).to_contain_text("version")
        count = sum(len(operations) for operations in served["paths"].values())
        await expect(page.locator(".route")).to_have_count(count)
        await expect(page.locator("#form-Event")).to_have_count(1)
        await page.click("#holds summary")
        await expect(page.locator("#holds")).to_contain_text("Roles: admin, operator, viewer.")


async def test_a_question_and_an_order_are_really_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as home, browser_page() as page:
        await home.post("agent/batch", batch())
        await page.goto(home.base + "/docs")
        gpu = page.locator("#gpus_one")
        await gpu.locator("summary").click()
        await gpu.locator("input[name='path:uuid']").fill(uuid(1))
        await gpu.get_by_role("button", name="Ask").click()
        await expect(gpu.locator("pre")).to_contain_text("200 OK")
        await expect(gpu.locator("pre")).to_contain_text(uuid(1))
        pause = page.locator("#create_pause")
        await pause.locator("summary").click()
        await pause.locator("textarea").fill('{"reason": "from the page"}')
        await pause.get_by_role("button", name="Order").click()
        await expect(pause.locator("pre")).to_contain_text('"outcome"')
        assert [each["reason"] for each in await home.get("audit")] == ["from the page"]
        await pause.locator("textarea").fill("{}")
        await pause.get_by_role("button", name="Order").click()
        await expect(pause.locator("pre")).to_contain_text("missing required field `reason`")


async def test_the_page_asks_for_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    async with house(tmp_path / "state", token_file=str(token)) as home, browser_page() as page:
        await page.goto(home.base + "/docs")
        await page.fill("#ask-value", "s3cret")
        await page.click("#ask-yes")
        await expect(page.locator("#link")).to_contain_text("version")
