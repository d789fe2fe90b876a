// The way to the interface from its own page: JSON requests, with a token where one is needed.

import { ask } from "./dom.js";

const TOKEN = "corral-token"; // kept for this tab only

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
export async function call(path) {
  const response = await send(path);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? `${path} answered ${response.status}`);
  return answer;
}
