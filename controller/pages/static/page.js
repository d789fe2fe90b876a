// Keeps an open page up to date: at each change that the controller tells of, and now and then besides.
// What is shown is rendered by the controller; here it is only asked for again.

import { tiles } from "./map.js";
import { morph } from "./morph.js";

const KINDS = ["event", "condition", "incident", "state", "hold", "action", "note", "gap"];
const SOON_MS = 300; // changes come in groups
const MOST_BUSY = 0.2; // of the time may go into bringing the page up to date
const CHARTS_MS = 15_000;
const AGAIN_MS = 5000;
const MOST_NODES = 100; // more than so many at once: the whole map

const every = Number(document.body.dataset.every ?? 0) * 1000;
const map = "tiles" in document.body.dataset ? tiles() : null;
let nodes = new Set(); // those with a tile that may show something else
let everything = false;
let running = false;
let stream = null; // open only while the page is seen: a browser has six connections for all tabs of a controller
let lost = false;
let timer = null;
let dueAt = Infinity;

function show(state, text) {
  const link = document.getElementById("link");
  link.className = `link ${state}`;
  if (link.textContent !== text) link.textContent = text;
}

async function fetched(address) {
  const response = await fetch(address, { cache: "no-store" });
  if (new URL(response.url).pathname === "/sign-in") throw new Error("signed out: reload the page");
  const text = await response.text();
  if (!response.ok) throw new Error(`the controller answered ${response.status}`);
  return new DOMParser().parseFromString(text, "text/html");
}

async function whole() {
  const fresh = await fetched(location.href);
  for (const region of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(region.id);
    if (other) morph(region, other);
  }
  map?.forget();
}

async function few(wanted) {
  const address = new URL(location.href);
  address.searchParams.set("only", [...wanted].join(","));
  const fresh = await fetched(address);
  for (const item of fresh.querySelectorAll("li")) {
    const old = document.getElementById(item.id);
    if (old) morph(old, item);
  }
}

// Bring the page up to date in so many milliseconds, or sooner if that was wanted already.
function want(ms) {
  const at = performance.now() + ms;
  if (at >= dueAt) return;
  dueAt = at;
  clearTimeout(timer);
  timer = setTimeout(turn, ms);
}

async function turn() {
  dueAt = Infinity;
  if (document.hidden) return; // asked for again once it is seen
  if (running) {
    want(SOON_MS);
    return;
  }
  running = true;
  const began = performance.now();
  try {
    await refresh();
    show("good", "live");
  } catch (error) {
    show("bad", `not live: ${error.message}`);
  }
  running = false;
  const rest = (performance.now() - began) / MOST_BUSY;
  if (everything || nodes.size) want(Math.max(SOON_MS, rest));
  else if (every) want(Math.max(every, rest));
}

function refresh() {
  const some = !everything && map && nodes.size && nodes.size <= MOST_NODES;
  const wanted = nodes;
  nodes = new Set();
  everything = false;
  return some ? few(wanted) : whole();
}

function told({ data }) {
  if (!map) everything = true;
  else {
    const node = map.nodeOf(JSON.parse(data)?.subject);
    if (!node) return; // a replica's: its tile does not show that, and the rest of the page comes by and by
    nodes.add(node);
  }
  want(SOON_MS);
}

function follow() {
  if (stream || document.hidden) return;
  stream = new EventSource("/api/v1/watch");
  for (const kind of KINDS) stream.addEventListener(kind, told);
  stream.onopen = () => {
    show("good", "live");
    everything ||= lost || !map; // what happened while nobody listened
    lost = false;
    want(everything ? SOON_MS : every);
  };
  stream.onerror = () => {
    lost = true;
    show("bad", "not live: the connection is down");
    if (stream?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    stream = null;
    setTimeout(follow, AGAIN_MS);
  };
}

function rest() {
  stream?.close();
  stream = null;
  lost = true;
}

async function charts(place) {
  if (!document.hidden) {
    try {
      const fresh = await fetched(place.dataset.load);
      if (place.firstElementChild?.dataset.drawn === undefined) place.replaceChildren(document.createElement("div"));
      const drawn = fresh.createElement("div");
      drawn.dataset.drawn = "";
      drawn.append(...fresh.body.childNodes);
      morph(place.firstElementChild, drawn);
    } catch {
      // shown by the next refresh of the page
    }
  }
  setTimeout(() => charts(place), CHARTS_MS);
}

follow();
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    rest();
    return;
  }
  follow();
  want(SOON_MS);
});
for (const place of document.querySelectorAll("[data-load]")) charts(place);
