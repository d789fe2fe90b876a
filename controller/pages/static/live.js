// The way to the controller: JSON requests with a token where one is needed, and the stream of changes.

import { ask, byId } from "./dom.js";

const TOKEN = "corral-token"; // kept for this tab only
const REFRESH_MS = 2000; // readings move between changes; agents report them every 2 s
const AGAIN_MS = 1000;

let asking = null;

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
}

async function askToken() {
  asking ??= ask({ title: "Token", text: "This controller asks for its token.", yes: "Use it", secret: true });
  const token = await asking;
  asking = null;
  if (token === null) throw new Error("no token given: reload the page to be asked again");
  sessionStorage.setItem(TOKEN, token);
}

// The answer to a request, asking for a token where one is needed.
export async function send(path, options = {}) {
  const response = await fetch(path, { cache: "no-store", ...options, headers: { ...headers(), ...options.headers } });
  if (response.status !== 401) return response;
  await askToken();
  return send(path, options);
}

// The JSON at a path. Throws an Error with the controller's own words.
export async function call(path, method = "GET", body = undefined) {
  const response = await send(path, { method, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? `${path} answered ${response.status}`);
  return answer;
}

function show(state, text) {
  byId("link").className = `link ${state}`;
  byId("link").textContent = text;
}

// Call `refresh` now, at every change of the fleet and every 2 s; `refresh` fetches and draws.
export function live(refresh) {
  let running = false;
  let wanted = false;
  async function turn() {
    wanted = true;
    if (running) return;
    running = true;
    while (wanted) {
      wanted = false;
      try {
        await refresh();
        show("good", "live");
      } catch (error) {
        show("bad", `not live: ${error.message}`);
      }
    }
    running = false;
  }
  turn();
  setInterval(turn, REFRESH_MS);
  follow(turn);
  return turn;
}

// Follow the stream for ever. The last id is sent along, so nothing is missed while the connection was down.
async function follow(changed) {
  let last = null;
  for (;;) {
    try {
      const response = await send("/api/v1/watch", { headers: last === null ? {} : { "Last-Event-ID": last } });
      if (response.ok) {
        changed();
        for await (const text of lines(response.body)) {
          if (text.startsWith("id: ")) last = text.slice(4);
          else if (text === "") changed();
        }
      }
    } catch {
      // shown by the next refresh
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
}
