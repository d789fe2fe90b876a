"""How long the map of a large fleet takes until a person can use it, in Chromium.

    python -m tests.bench.pages [--nodes 1250] [--times 5] [--picture FILE]

A real controller process on loopback, its nodes joined and sending heartbeats, some of their GPUs at fault. For each
time a new browser context opens the page: until the first answer came whole, until the document was interactive, until
it was painted, and until a key that was pressed at once had moved the focus (that is what "interactive" means here);
and how much processor time the page's own thread took for that, which other work on the machine does not lengthen.
Then the same for a page that is filtered, and the time from a fault's report to its tile on the open page.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from tests.bench.fleet_load import first, uuid
from tests.bench.fleet_nodes import GPUS, Fleet, beating
from tests.bench.fleet_scale import Process, at_once, processor, ready, say
from tests.controller.pages.conftest import FLAGS
from tests.ports import free_ports
from tests.programs import need

FAULTS = 40
SETTLE_S = 5.0
PAINTED = """() => {
    const it = performance.getEntriesByType("navigation")[0];
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return {answered: it.responseEnd, bytes: it.transferSize, interactive: it.domInteractive,
        painted: paint?.startTime ?? 0};
}"""
MOVED = """() => {
    const here = document.activeElement;
    return here.matches(".map a") && here !== document.querySelector(".map .t");
}"""
KEY = """() => new Promise((resolve) => {
    document.addEventListener("focusin", () => resolve(performance.now()), {once: true});
    document.querySelector(".map .t").focus();
})"""


async def opened(browser: Browser, address: str) -> tuple[dict[str, float], Page]:
    """Open a page anew; its times in ms from the start of the navigation."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    devtools = await context.new_cdp_session(page)
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    await page.goto(address, wait_until="domcontentloaded")
    usable = await page.evaluate(KEY)
    await page.keyboard.press("ArrowRight")
    await page.wait_for_function(MOVED)
    moved = await page.evaluate("performance.now()")
    spent = {each["name"]: each["value"] for each in (await devtools.send("Performance.getMetrics"))["metrics"]}
    worked = spent["TaskDuration"] * 1e3
    return {**await page.evaluate(PAINTED), "usable": usable, "moved": moved, "worked": worked}, page


def row(name: str, all_times: Sequence[dict[str, float]]) -> None:
    """The middle of each figure."""
    middle = {key: statistics.median(each[key] for each in all_times) for key in all_times[0]}
    say(
        name,
        f"whole answer {middle['answered']:6.0f} ms ({middle['bytes'] / 1024:.0f} KiB)"
        f"   document {middle['interactive']:6.0f} ms   painted {middle['painted']:6.0f} ms"
        f"   usable {middle['usable']:6.0f} ms   key has moved {middle['moved']:6.0f} ms"
        f"   thread {middle['worked']:6.0f} ms",
    )


async def measure(options: argparse.Namespace, folder: Path) -> None:
    """All of it, printed as it comes."""
    (port,) = free_ports(1)
    fleet, config = Fleet(port, options.nodes, 3), folder / "controller.toml"
    config.write_text(f'listen = "127.0.0.1:{port}"\nstate_dir = "{folder}/state"\n')
    print(f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {options.nodes} nodes of {GPUS} GPUs")
    process = Process(config)
    try:
        await ready(port)
        await at_once([fleet.join(name, first(name, GPUS)) for name in fleet.names])
        for number in range(FAULTS):
            await fleet.report(fleet.fault(fleet.names[number * len(fleet.names) // FAULTS], number % GPUS, "xid:48"))
        async with beating(fleet), async_playwright() as playwright:
            await fleet.calm()
            await asyncio.sleep(SETTLE_S)
            program = need("chromium", "apt-get install chromium")
            browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
            await pages(fleet, browser, options)
            await browser.close()
    finally:
        process.kill()


async def pages(fleet: Fleet, browser: Browser, options: argparse.Namespace) -> None:
    """The map, whole and filtered, and a change on it."""
    base = f"http://127.0.0.1:{fleet.port}"
    for name, path in (("map", "/"), ("filtered", "/?state=trouble&show=tiles")):
        all_times = []
        for _ in range(options.times):
            times, page = await opened(browser, base + path)
            all_times.append(times)
            await page.context.close()
        row(name, all_times)
    times, page = await opened(browser, base + "/")
    name = fleet.names[len(fleet.names) // 2 + 1]
    tile = page.locator(f'.map a[href="/gpus/{uuid(name, 3)}"]')
    await page.wait_for_function("document.getElementById('link').textContent === 'live'")
    before = await tile.get_attribute("aria-label")
    began = time.perf_counter()
    await fleet.report(fleet.fault(name, 3, "xid:79"))
    while await tile.get_attribute("aria-label") == before:
        await asyncio.sleep(0.02)
    say("change", f"{time.perf_counter() - began:5.2f} s from a fault's report to its tile on an open map")
    if options.picture:
        await page.evaluate("window.scrollTo(0, 0)")
        await page.screenshot(path=options.picture)
    await page.context.close()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1250)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--picture", help="where to leave a picture of the map")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(parser.parse_args(), Path(folder)))


if __name__ == "__main__":
    main()
