"""Pages by axe: nothing of WCAG 2.2 A and AA, and none of its best practices, is broken."""

from importlib.resources import files

import pytest

from tests.controller.house import uuid
from tests.controller.pages.conftest import Site

pytestmark = pytest.mark.asyncio(loop_scope="session")
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
PATHS = (
    "/", "/?show=tiles", "/gpus/BROKEN", f"/gpus/{uuid(5)}", f"/gpus/{uuid(5)}/charts", "/incidents", "/incidents/OPEN",
    "/deployments",
)  # fmt: skip


async def test_axe_finds_nothing(site: Site) -> None:
    (incident, *_) = await site.home.get("incidents", state="open")
    wrong = []
    async with site.page("/session", bypass_csp=True) as page:
        for path in PATHS:
            await page.goto(site.home.base + path.replace("BROKEN", site.gpu).replace("OPEN", incident["id"]))
            await page.evaluate(AXE)
            found = await page.evaluate("axe.run()")
            wrong += [
                f"{path}: {each['id']}: {each['help']}: {node['html'][:200]}"
                for each in found["violations"]
                for node in each["nodes"][:3]
            ]
    assert not wrong, "\n".join(wrong)
