"""The pages in a real browser, over a real controller: what a person on call sees and does."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.controller.house import RAW, uuid
from tests.controller.pages.conftest import MASTER, Site

pytestmark = pytest.mark.asyncio(loop_scope="session")


def card(page: Page, index: int) -> Locator:
    return page.locator(".gpu").filter(has=page.get_by_text(f"GPU {index}", exact=True))


async def give(page: Page, reason: str) -> None:
    """Give the reason, and the order."""
    await page.fill("[name=reason]", reason)
    await page.click("button.main")


async def test_the_fleet_shows_the_fault_and_what_each_gpu_does(site: Site) -> None:
    async with site.page("/") as page:
        await expect(page.locator(".banner.virtual")).to_contain_text("no real GPU")
        await expect(page.locator("#nodes .gpu")).to_have_count(8)
        broken = int(site.gpu.removeprefix("GPU-"), 16)
        await expect(card(page, broken).locator(".tag.hold")).to_contain_text("policy: xid:79")
        busy = card(page, 5)
        await expect(busy.locator(".meter").nth(0)).to_have_text("util100 %")
        await expect(busy.locator(".meter").nth(1)).to_have_text("SM active12 %")
        await expect(busy.locator(".meter").nth(2)).to_have_text("memory61 GiB")
        await expect(busy.locator(".figures")).to_have_text("61 °C 402 / 700 W")
        await expect(busy.locator(".activity")).to_have_text("launch-bound: 12% of the chip used")
        await expect(busy.locator("rect").nth(1)).to_have_attribute("width", "12.0")
        await expect(page.locator("#aside")).to_contain_text("reboot node")
        await expect(page.locator("#aside .deployment")).to_contain_text("2 / 2 ready")


async def test_what_was_found_is_shown_with_its_owner_model_and_gpus(site: Site) -> None:
    async with site.page("/") as page:
        for told in (
            "vllm.service:8000@n1",
            "ready",
            "vllm serves llama on GPU 6, GPU 7",
            "unit vllm.service, uid 1000",
        ):
            await expect(page.locator("#observed")).to_contain_text(told)
        await expect(page.locator("#observed")).to_contain_text("observed: Corral never signals it")
        await expect(card(page, 7).locator(".tag.replica")).to_have_text("▶ vllm.service:8000@n1")


async def test_filters_and_tiles_say_states_by_shape_and_name(site: Site) -> None:
    async with site.page("/?show=tiles") as page:
        await expect(page.locator(".map .t")).to_have_count(8)
        tile = page.locator(f'.map a[href="/gpus/{site.gpu}"]')
        await expect(tile).to_have_attribute("aria-label", re.compile(r"GPU \d fenced|GPU \d lost|GPU \d cordoned"))
        assert (await tile.text_content()) != (await page.locator(f'.map a[href="/gpus/{uuid(5)}"]').text_content())
        await page.focus(".map .n")
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("ArrowRight")
        assert await page.evaluate("document.activeElement.getAttribute('aria-label')") == "GPU 1 healthy"
        await page.select_option("[name=state]", "trouble")
        await page.click(".filter button")
        await expect(page.locator(".map .t")).to_have_count(1)
        await page.fill("[name=text]", "no such thing")
        await page.click(".filter button")
        await expect(page.locator("#nodes")).to_contain_text("No GPU matches")
    async with site.page("/?model=llama") as page:
        await expect(page.locator("#nodes .gpu")).to_have_count(2)


async def test_a_gpu_page_tells_why_and_shows_the_kernels_line(site: Site) -> None:
    async with site.page(f"/gpus/{site.gpu}") as page:
        await expect(page.locator("h1")).to_contain_text("n1 · GPU")
        await expect(page.locator("#why")).to_contain_text("xid:79")
        await expect(page.locator("#why")).to_contain_text("Held by policy")
        await expect(page.locator("#story .proof").first).to_have_text(RAW)
        await expect(page.locator("aside")).to_contain_text("Places")


async def test_a_gpu_page_draws_the_last_hour_with_its_gap(site: Site) -> None:
    async with site.page(f"/gpus/{uuid(5)}") as page:
        await expect(page.locator("#truth")).to_contain_text("launch-bound")
        power = page.locator(".chart", has_text="Power")
        await expect(power.locator("svg")).to_have_attribute("aria-label", re.compile(r"power \d+ W last.*limit 700 W"))
        path = await power.locator(".curve").get_attribute("d")
        assert path is not None
        assert path.count("M") == 2
    async with site.page(f"/gpus/{uuid(3)}") as page:
        await expect(page.locator("#charts")).to_have_text("no reading in the last hour")


async def test_an_order_says_what_it_does_asks_why_and_shows_at_once(site: Site) -> None:
    async with site.page(f"/gpus/{uuid(2)}", "operator") as page:
        await page.click("text=Hold …")
        await expect(page.locator("h1")).to_have_text("Hold GPU 2?")
        await expect(page.locator(".foretold")).to_contain_text("Holds GPU 2")
        await page.click("button.main")
        assert await page.evaluate("document.querySelector('[name=reason]').validity.valueMissing")
        await give(page, "burn-in <b>test</b>")
        await expect(page).to_have_url(re.compile(f"/gpus/{uuid(2)}$"))
        await expect(page.locator("#why")).to_contain_text("burn-in <b>test</b>")
        await page.click("text=Lift …")
        await give(page, "passed")
        await expect(page.locator("#why")).to_contain_text("Nothing is wrong with it")
    entries = [each for each in await site.home.get("audit") if each["reason"] in {"burn-in <b>test</b>", "passed"}]
    assert [(each["act"], each["actor"].split(" at ")[0]) for each in entries] == [
        ("hold", "operator"),
        ("lift", "operator"),
    ]
    async with site.page("/audit") as page:
        await expect(page.locator("tbody")).to_contain_text("burn-in <b>test</b>")


async def test_an_open_page_follows_what_happens_elsewhere(site: Site) -> None:
    async with site.page("/?show=tiles", "viewer") as page, site.page("/", "viewer") as cards:
        tile = page.locator(f'.map a[href="/gpus/{uuid(4)}"]')
        await expect(page.locator("#link")).to_have_text("live")
        await expect(tile).to_have_attribute("aria-label", "GPU 4 healthy")
        hold = await site.home.post("holds", {"subject": {"gpu": uuid(4)}, "reason": "fan noise"})
        await expect(tile).to_have_attribute("aria-label", "GPU 4 cordoned")
        await expect(card(cards, 4).locator(".word")).to_contain_text("cordoned")
        await site.home.call("DELETE", f"/api/v1/holds/{hold['id']}", object, {"reason": "fixed"})
        await expect(tile).to_have_attribute("aria-label", "GPU 4 healthy")


async def test_a_page_that_nobody_sees_keeps_no_connection(site: Site) -> None:
    async with site.page("/") as page:
        await expect(page.locator("#link")).to_have_text("live")
        await page.evaluate(
            """window.opened = [];
            window.EventSource = class extends EventSource {
                constructor(address) { super(address); window.opened.push(this); }
            };
            window.seen = (is) => {
                Object.defineProperty(document, "hidden", { configurable: true, get: () => !is });
                document.dispatchEvent(new Event("visibilitychange"));
                return window.opened.map((stream) => stream.readyState === EventSource.CLOSED);
            }"""
        )
        assert await page.evaluate("[seen(false), seen(true), seen(false), seen(true)]") == [
            [], [False], [True], [True, False]
        ]  # fmt: skip
        await expect(page.locator("#link")).to_have_text("live")


async def test_a_pause_stands_over_all_pages_until_it_is_ended(site: Site) -> None:
    async with site.page("/", "operator") as page:
        await page.click("text=Pause automation …")
        await give(page, "change freeze")
        await expect(page.locator(".banner.paused")).to_contain_text("change freeze")
        await page.click(".banner.paused .button")
        await give(page, "done")
        await expect(page.locator(".banner.paused")).to_have_count(0)


async def test_an_incident_tells_its_story_and_gives_its_evidence(site: Site) -> None:
    async with site.page("/incidents?state=open") as page:
        await page.click("tbody a >> text=xid:79")
        await expect(page.locator("h1")).to_contain_text("xid:79 on GPU")
        await expect(page.locator("#story .proof").first).to_have_text(RAW)
        await expect(page.locator("#actions")).to_contain_text("reboot node")
        await expect(page.locator("#actions")).to_contain_text("Approve …")
        await expect(page.locator("main")).to_contain_text("corral incident show i-")
        await expect(page.locator("main a >> text=Runbook CorralGpuFault")).to_have_count(1)
        async with page.expect_download() as getting:
            await page.click("text=Evidence (tar)")
        assert (await getting.value).suggested_filename.endswith(".tar")


async def test_a_waiting_action_says_what_it_disrupts_before_it_is_approved(site: Site) -> None:
    async with site.page("/", "operator") as page:
        await page.click("#aside >> text=Approve …")
        await expect(page.locator("h1")).to_have_text("Approve reboot node of node n1?")
        await expect(page.locator(".foretold")).to_contain_text("Stops node n1")  # also where a floor is against it
        await page.click("text=Cancel")
        await expect(page).to_have_url(site.home.base + "/")


async def test_a_viewer_sees_no_button_and_its_form_is_refused(site: Site) -> None:
    for path in ("/", f"/gpus/{site.gpu}", "/incidents", "/deployments"):
        async with site.page(path, "viewer") as page:
            assert await page.locator("text=/(Hold|Lift|Drain|Approve|Pause automation|Close) …/").count() == 0
    async with site.page(f"/orders/hold?subject.gpu={uuid(2)}", "viewer") as page:
        await expect(page.locator("h1")).to_have_text("That is not allowed")


async def test_deployments_say_which_replicas_gateways_send_to(site: Site) -> None:
    async with site.page("/deployments") as page:
        rows = page.locator("#chat tbody tr")
        await expect(rows.filter(has_text="● yes")).to_have_count(2)
        await expect(page.locator("text=found, not handed over")).to_have_count(1)
        await expect(page.locator("[aria-label=Gateways]")).to_contain_text("10.0.0.9:7420")


async def test_the_policy_says_where_rules_come_from_and_what_was_held_back(site: Site) -> None:
    async with site.page("/policy") as page:
        await expect(page.locator("[aria-label=Rules]")).to_contain_text("the built-in row is in force")
        await expect(page.locator("[aria-label=Precision] tbody")).to_contain_text("xid:79")
        await expect(page.locator("[aria-label=Adoptions]")).to_contain_text("in force")


async def test_rules_are_found_by_code_and_lead_to_their_runbook(site: Site) -> None:
    async with site.page("/policy") as page:
        assert len(await page.content()) < 40_000
        await page.click("[aria-label=Rules] a")
        await expect(page.locator("[aria-label=Rules] tbody tr")).to_have_count(100)
        await page.fill("[name=text]", "pcie_w")
        await page.press("[name=text]", "Enter")
        await expect(page.locator("[aria-label=Rules] tbody tr")).to_have_count(1)
        await expect(page.locator("[aria-label=Rules] tbody tr")).to_contain_text("catalogue")
        await page.click("tbody a >> text=pcie_width")
        await expect(page.locator("h1")).to_have_text("CorralPcie")
        await expect(page.locator("article pre")).to_contain_text("pcie_width")
        await page.click("text=All runbooks")
        await page.click("a >> text=CorralGpuFault")
        await expect(page.locator("h2 >> text=How to repair")).to_be_visible()


async def test_a_code_has_a_page_too_and_who_asks_for_none_is_led_to_all(site: Site) -> None:
    async with site.page("/runbooks/xid:79") as page:
        await expect(page.locator("h1")).to_have_text("xid:79: GPU has fallen off the bus")
        await page.click("article a >> text=CorralGpuFault")
        await expect(page.locator("h1")).to_have_text("CorralGpuFault")
    async with site.page("/runbooks/<b>Corral") as page:
        await expect(page.locator("h1")).to_have_text("There is no such page")
        await page.click("main a >> text=All runbooks")
        await expect(page.locator("h1")).to_have_text("Runbooks")


async def test_a_person_who_is_lost_gets_a_page_and_a_program_a_problem(site: Site) -> None:
    async with site.page("/nowhere") as page:
        await expect(page.locator("h1")).to_have_text("There is no such page")
        await expect(page.locator("main")).to_contain_text("Nothing is served at /nowhere.")
    assert "nothing is served at /nowhere" in (await site.home.raw("GET", "/nowhere"))[1]
    assert '"status":404' in (await site.home.raw("GET", "/api/v1/nothing"))[1]


async def test_who_has_not_signed_in_is_asked_and_led_back(site: Site) -> None:
    context = await site.browser.new_context()
    page = await context.new_page()
    await page.goto(f"{site.home.base}/gpus/{site.gpu}?all=1")
    await page.fill("[name=token]", "wrong")
    await page.click("button.main")
    await expect(page.locator("[role=alert]")).to_contain_text("does not count here")
    await page.fill("[name=token]", MASTER)
    await page.click("button.main")
    await expect(page).to_have_url(re.compile(f"/gpus/{site.gpu}"))
    await page.click(".who")
    await page.click("text=Sign out")
    await page.goto(site.home.base + "/")
    await expect(page.locator("h1")).to_have_text("Sign in")
    await context.close()
