"""The API's own page in a real browser: every route is there, and what is asked there is really asked."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.controller.house import uuid
from tests.controller.pages.conftest import MASTER, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_every_route_is_there_to_be_read(site: Site) -> None:
    served = await site.home.call("GET", "/openapi.json", Any)
    async with site.page("/docs") as page:
        await expect(page.locator("#link")).to_contain_text("version")
        count = sum(len(operations) for operations in served["paths"].values())
        await expect(page.locator(".route")).to_have_count(count)
        await expect(page.locator("#form-Event")).to_have_count(1)
        await page.click("#holds summary")
        await expect(page.locator("#holds")).to_contain_text("Roles: admin, operator, viewer.")


async def test_a_session_asks_and_only_the_token_itself_orders(site: Site) -> None:
    async with site.page("/docs") as page:
        gpu = page.locator("#gpus_one")
        await gpu.locator("summary").click()
        await gpu.locator("input[name='path:uuid']").fill(uuid(1))
        await gpu.get_by_role("button", name="Ask").click()
        await expect(gpu.locator("pre")).to_contain_text("200 OK")
        await expect(gpu.locator("pre")).to_contain_text(uuid(1))
        discard = page.locator("#create_discards")
        await discard.locator("summary").click()
        await discard.locator("textarea").fill('{"reason": "from the page"}')
        await discard.get_by_role("button", name="Order").click()
        await page.fill("#ask-value", MASTER)
        await page.click("#ask-yes")
        await expect(discard.locator("pre")).to_contain_text('"outcome"')
        assert "from the page" in [each["reason"] for each in await site.home.get("audit")]
        await discard.locator("textarea").fill("{}")
        await discard.get_by_role("button", name="Order").click()
        await expect(discard.locator("pre")).to_contain_text("missing required field `reason`")
