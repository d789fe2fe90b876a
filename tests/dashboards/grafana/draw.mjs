// Draws every board of dashboards/json in Chromium, against a Prometheus, and says what each panel showed.
//
//     node draw.mjs PROMETHEUS FROM_MS TO_MS VARIABLES_JSON OUT [BOARD…]
//
// Into OUT go BOARD.webp (and one BOARD-dark.webp), BOARD.png for eyes, and report.json: {board: report of the page}.
import { createServer } from "node:http";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [prometheus, from, to, variables, out, ...only] = process.argv.slice(2);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = join(ROOT, "build/dashboards/page");
const BOARDS = join(ROOT, "dashboards/json");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };
const DARK = "corral-fleet";
const ROW = 38; // pixels of a row of the grid and its gap, as in Grafana
const ABOVE = 110;

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://here");
  try {
    if (url.pathname.startsWith("/prometheus/")) {
      const answer = await fetch(prometheus + url.pathname.slice("/prometheus".length) + url.search);
      const text = await answer.text();
      response.writeHead(answer.status, { "Content-Type": "application/json" }).end(text);
      return;
    }
    const path = url.pathname.startsWith("/boards/") ? join(BOARDS, basename(url.pathname)) : join(PAGE, url.pathname === "/" ? "index.html" : url.pathname);
    const content = await readFile(path);
    response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" }).end(content);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const here = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

async function draw(uid, theme) {
  const board = JSON.parse(await readFile(join(BOARDS, `${uid}.json`), "utf8"));
  const rows = Math.max(...board.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const page = await browser.newPage({ viewport: { width: 1440, height: rows * ROW + ABOVE } });
  const asked = new URLSearchParams({ board: uid, theme, from, to });
  for (const [name, value] of Object.entries(JSON.parse(variables))) {
    asked.set(`var-${name}`, value);
  }
  await page.goto(`${here}/?${asked}`);
  const wanted = board.panels.filter(({ type }) => type !== "row").length;
  const drawn = () => Object.values(window.report.panels).filter(({ state }) => state === "Done" || state === "Error").length;
  await page.waitForFunction(`(${drawn})() >= ${wanted} || window.report.errors.length > 0`, null, { timeout: 60_000 }).catch(() => undefined);
  await page.waitForTimeout(1500); // canvases are drawn in the frame after their data
  const found = await page.evaluate(() => window.report);
  const said = await page.evaluate(() => document.body.innerText.match(/An unexpected error happened|Panel plugin not found|Error loading/g) ?? []);
  const png = await page.screenshot({ type: "png" });
  await page.close();
  return { png, report: { ...found, wanted, errors: [...found.errors, ...said] } };
}

async function smaller(png) {
  const page = await browser.newPage();
  const url = await page.evaluate(async (source) => {
    const picture = await createImageBitmap(await (await fetch(source)).blob());
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    canvas.getContext("2d").drawImage(picture, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.8 });
    return [...new Uint8Array(await blob.arrayBuffer())];
  }, `data:image/png;base64,${png.toString("base64")}`);
  await page.close();
  return Buffer.from(url);
}

await mkdir(out, { recursive: true });
const reports = {};
const all = (await readdir(BOARDS)).map((name) => basename(name, ".json")).sort();
for (const uid of all.filter((each) => only.length === 0 || only.includes(each))) {
  for (const theme of uid === DARK ? ["light", "dark"] : ["light"]) {
    const name = theme === "dark" ? `${uid}-dark` : uid;
    const { png, report } = await draw(uid, theme);
    reports[name] = report;
    await writeFile(join(out, `${name}.png`), png);
    await writeFile(join(out, `${name}.webp`), await smaller(png));
    console.log(`${name}: ${Object.keys(report.panels).length} of ${report.wanted} panels, ${report.errors.length} errors`, ...report.errors.slice(0, 3));
  }
}
await writeFile(join(out, "report.json"), JSON.stringify(reports, null, 1));
await browser.close();
server.close();
