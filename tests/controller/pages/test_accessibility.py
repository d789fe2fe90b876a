"""All pages by axe, in light and in dark: nothing that it finds of WCAG 2.2 A and AA, or of its best practices.

In the dark only colours differ, so only contrast is looked at again.
"""

from importlib.resources import files

import pytest

from tests.controller.house import uuid
from tests.controller.pages.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="session")
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
LIGHT = "axe.run({resultTypes: ['violations']})"
DARK = "axe.run({resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']})"
FEW = "document.querySelectorAll('.group:nth-of-type(n+3)').forEach((each) => each.remove())"  # of /docs: all alike
PATHS = (
    "/", "/?show=tiles", "/gpus/{broken}", f"/gpus/{uuid(5)}", f"/gpus/{uuid(5)}/charts", "/gpus/GPU-gone",
    "/incidents", "/incidents/{incident}", "/deployments", "/policy", "/policy/rules?text=xid:79", "/audit",
    "/runbooks/CorralGpuFault", "/session", "/sign-in", f"/orders/hold?subject.gpu={uuid(2)}", "/orders/lift/{hold}",
    "/orders/approve?action={action}", "/orders/close/{incident}", "/nowhere", "/docs",
)  # fmt: skip


async def test_axe_finds_nothing(site: Site) -> None:
    (incident, *_) = await site.home.get("incidents", state="open")
    (hold, *_) = await site.home.get("holds")
    (action, *_) = [each for each in await site.home.get("actions", state="open") if each["state"] == "waiting"]
    names = {"broken": site.gpu, "incident": incident["id"], "hold": hold["id"], "action": action["id"]}
    paths = [path.format(**names) for path in PATHS]
    await site.home.post("pause", {"reason": "a banner stands over all pages"})
    try:
        wrong = await _violations(site, paths)
    finally:
        await site.home.post("resume", {"reason": "looked at"})
    assert not wrong, "\n".join(wrong)


async def _violations(site: Site, paths: list[str]) -> list[str]:
    wrong = []
    async with site.page("/session", bypass_csp=True) as page:
        for path in paths:
            await page.goto(site.home.base + path)
            if path == "/docs":
                await page.wait_for_selector(".route")
                await page.evaluate(FEW)
            await page.evaluate(AXE)
            for scheme, run in (("light", LIGHT), ("dark", DARK)):
                await page.emulate_media(color_scheme=scheme)
                found = await page.evaluate(run)
                wrong += [
                    f"{path} ({scheme}): {each['id']}: {each['help']}: {node['html'][:200]}"
                    for each in found["violations"]
                    for node in each["nodes"][:3]
                ]
            await page.emulate_media(color_scheme="light")
    return wrong
