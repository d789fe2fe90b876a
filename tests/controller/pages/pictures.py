"""The pictures of docs/pages.md, of the tests' own fleet: ``python -m tests.controller.pages.pictures [NAME ...]``.

With pngquant (apt-get install pngquant) they take a third of the room.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.controller.house import uuid
from tests.controller.pages.conftest import Site, standing

DOCS = Path(__file__).resolve().parents[3] / "docs"
DARK: dict[str, Any] = {"color_scheme": "dark"}
NARROW: dict[str, Any] = {"viewport": {"width": 400, "height": 860}}
SHOTS: dict[str, tuple[str, dict[str, Any]]] = {
    "../fleet": ("/", {}),
    "fleet-dark": ("/", DARK),
    "fleet-tiles": ("/?show=tiles", {}),
    "gpu": ("/gpus/BROKEN", {}),
    "gpu-hour": (f"/gpus/{uuid(5)}", DARK),
    "incidents": ("/incidents", {}),
    "incident": ("/incidents/OPEN", {}),
    "deployments": ("/deployments", {}),
    "policy": ("/policy", {}),
    "rules": ("/policy/rules?text=xid:1", {}),
    "runbook": ("/runbooks/CorralPcie", {}),
    "audit": ("/audit", DARK),
    "order": ("/orders/approve?action=WAITING", {}),
    "sign-in": ("/sign-in", {}),
    "fleet-narrow": ("/", NARROW),
    "incident-narrow": ("/incidents/OPEN", NARROW),
    "deployments-narrow": ("/deployments", NARROW),
}


def squeeze(path: Path) -> None:
    """Make a picture small, where that can be done."""
    if (program := shutil.which("pngquant")) is not None:
        subprocess.run([program, "--force", "--skip-if-larger", "--ext", ".png", "128", str(path)], check=False)


async def shoot(site: Site, names: list[str]) -> None:
    """Take those pictures."""
    (DOCS / "pages").mkdir(exist_ok=True)
    hold = await site.home.post("holds", {"subject": {"gpu": uuid(3)}, "reason": "fan noise, ticket 812"})
    (incident, *_) = await site.home.get("incidents", state="open")
    (action, *_) = [each for each in await site.home.get("actions", state="open") if each["state"] == "waiting"]
    for name, (path, options) in SHOTS.items():
        if names and name not in names:
            continue
        where = path.replace("BROKEN", site.gpu).replace("OPEN", incident["id"]).replace("WAITING", action["id"])
        async with site.page(where, **{"viewport": {"width": 1280, "height": 740}, **options}) as page:
            await page.wait_for_timeout(1500)
            picture = DOCS / "pages" / f"{name}.png"
            await page.screenshot(path=picture)
            squeeze(picture)
            print(name, flush=True)
    await site.home.call("DELETE", f"/api/v1/holds/{hold['id']}", object, {"reason": "done"})


async def main() -> None:
    """Take the pictures that are named, or all."""
    with tempfile.TemporaryDirectory() as folder:
        async with standing(Path(folder)) as site:
            await shoot(site, sys.argv[1:])


if __name__ == "__main__":
    asyncio.run(main())
