"""``make dashboards-check``: every board drawn by Grafana's own packages, against a real fleet that had faults.

    python -m tests.dashboards.check [--minutes 4] [--pictures docs/pictures]

A fleet of ``corral up`` with real engines serves, has faults and repairs them, a real Prometheus scrapes it, and
Chromium draws the boards from it. Fails if a unit, transformation, reducer, key or type is not Grafana's, if a panel
shows an error, or if one is empty that should not be. Needs Node 20 or newer with npm, Chromium and Prometheus.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.e2e.boards import ABSENT, BOARDS, prometheus
from tests.e2e.fleet import ROOT, Fleet, fleet
from tests.e2e.load import Load

HERE = ROOT / "tests" / "dashboards" / "grafana"
PAGE = ROOT / "build" / "dashboards" / "page" / "index.html"
DRAWN = ROOT / "build" / "dashboards" / "drawn"
MOST_BYTES = 250_000  # of a picture
PATIENCE_S = 600.0  # until engines serve, on a machine that has other work
FAULTS = (("ecc", {}), ("thermal", {}), ("xid", {"code": 13}), ("xid", {"code": 74}), ("remap", {}))


def installed() -> None:
    """Grafana's packages as the lock file pins them, and the page built; both only if something has changed."""
    npm = program("npm", "apt-get install nodejs npm; Node must be 20 or newer")
    mark = HERE / "node_modules" / ".package-lock.json"
    if not mark.exists() or mark.stat().st_mtime < (HERE / "package-lock.json").stat().st_mtime:
        print("installing Grafana's packages (500 MB) …", flush=True)
        run(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps")
        mark.touch()
    run("node", "known.cjs")
    run("node", "typed.mjs")
    run("node_modules/.bin/tsc", "-p", ".")
    sources = [*HERE.glob("src/*"), *HERE.glob("*.html"), HERE / "vite.config.mjs", HERE / "package-lock.json"]
    if not PAGE.exists() or PAGE.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        run("node_modules/.bin/vite", "build", "--logLevel", "warn")


def program(name: str, install: str) -> str:
    """The path of a program of this machine."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not installed; run: {install}")
    return found


def run(*command: str) -> None:
    """A program of the harness, in its folder; whoever fails ends it all."""
    subprocess.run(command, cwd=HERE, check=True)


async def play(running: Fleet, minutes: float) -> None:
    """What happens to the fleet while its boards fill."""
    until = time.monotonic() + 60 * minutes
    async with Load(running.plan.gateway, "chat", streams=3) as load:
        await load.served(4)
        victim = await running.gpu_serving("chat")
        await running.drill("xid", victim["index"], code=79)
        await running.until("users are served by all replicas again", running.all_ready, PATIENCE_S)
        idle = [gpu["index"] for gpu in await running.gpus() if gpu["state"] == "healthy"]
        for (kind, more), gpu in zip(FAULTS, reversed(idle), strict=False):
            await running.drill(kind, gpu, **more)
            await asyncio.sleep(min(12.0, max(0.0, until - time.monotonic())))
        await judged(running)
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        print(f"served {load.finished}, lost {len(load.failures)}", *load.failures[:3], flush=True)


async def judged(running: Fleet) -> None:
    """A person says of one incident that Corral was right."""
    incidents = await running.get("/api/v1/incidents")
    for incident in incidents[:1]:
        body = {"verdict": "right", "reason": "the board was dead"}
        await running.post(f"/api/v1/incidents/{incident['id']}/close", body)


async def chosen(running: Fleet) -> dict[str, str]:
    """What the boards' variables are set to: a GPU that serves."""
    serving = await running.gpu_serving("chat")
    node = next(each["node"] for each in (await running.get("/api/v1/fleet"))["nodes"])
    return {"node": node, "gpu": serving["uuid"], "deployment": "chat"}


async def drawn(minutes: float) -> dict[str, Any]:
    """Play, draw, and what the page says of each board's panels."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        async with (
            fleet(folder / "fleet", real_engine=True, patience_s=PATIENCE_S) as running,
            prometheus(running, folder) as address,
        ):
            began = time.time()
            await play(running, minutes)
            variables = json.dumps(await chosen(running))
            command = ["node", "draw.mjs", address, str(int(1000 * began)), str(int(1000 * time.time())), variables]
            drawing = await asyncio.create_subprocess_exec(*command, str(DRAWN), cwd=HERE)
            if await drawing.wait():
                raise SystemExit("the boards could not be drawn")
    return dict(json.loads((DRAWN / "report.json").read_text()))


def faults(reports: dict[str, Any]) -> list[str]:
    """What is wrong on the boards as they were drawn."""
    found = []
    for path in BOARDS:
        panels = {panel["id"]: panel for panel in json.loads(path.read_text())["panels"]}
        for name in (path.stem, f"{path.stem}-dark"):
            if name not in reports:
                continue
            report = reports[name]
            found += [f"{name}: {error}" for error in report["errors"]]
            for number, shown in report["panels"].items():
                asked = [target["expr"] for target in panels[int(number)]["targets"]]
                if shown.get("error") or shown["state"] != "Done":
                    found.append(f"{name}: {shown['title']}: {shown.get('error', shown['state'])}")
                elif not shown["series"] and not all(ABSENT.search(expression) for expression in asked):
                    found.append(f"{name}: {shown['title']} shows nothing")
            if len(report["panels"]) < report["wanted"]:
                found.append(f"{name}: only {len(report['panels'])} of {report['wanted']} panels were drawn")
    return found


def kept(pictures: Path) -> list[str]:
    """Copy the pictures to where the docs show them; which are too large for that."""
    pictures.mkdir(parents=True, exist_ok=True)
    for picture in sorted(DRAWN.glob("*.webp")):
        shutil.copy(picture, pictures)
    large = [path.name for path in pictures.glob("*.webp") if path.stat().st_size > MOST_BYTES]
    return [f"{name} is larger than {MOST_BYTES} bytes" for name in large]


def main() -> None:
    """Run it; exit code 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs" / "pictures")
    options = parser.parse_args()
    os.environ["CHROMIUM"] = program("chromium", "apt-get install chromium")
    program("prometheus", "apt-get install prometheus")
    installed()
    found = faults(asyncio.run(drawn(options.minutes))) + kept(options.pictures)
    print("\n".join(found) or "every board is drawn, and none is empty that should not be")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
