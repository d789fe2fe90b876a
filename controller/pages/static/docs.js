// The API, to read and to try: drawn from /openapi.json, so it shows what this controller serves and nothing else.

import { byId, make } from "./dom.js";
import { call, send } from "./api.js";

const SHOWN = 200_000; // letters of an answer; a page is no place for more
const STREAMED_MS = 10_000; // how long a stream is followed

function nameOf(schema) {
  return schema?.$ref?.split("/").pop();
}

// A schema in few words: Fleet, list of Event, string or null.
function words(schema) {
  if (!schema) return "";
  if (schema.$ref) return nameOf(schema);
  if (schema.enum) return schema.enum.join(" · ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map(words))].join(" or ");
  if (schema.type === "array") return `list of ${words(schema.items) || "anything"}`;
  return schema.type ?? "anything";
}

// A body to begin with: each required field of the form, with an example of its kind.
function example(schema, page, deep = 0) {
  const form = schema?.$ref ? page.components.schemas[nameOf(schema)] : schema;
  if (!form || deep > 4) return null;
  if (form.enum) return form.enum[0];
  if (form.anyOf) return example(form.anyOf.find((each) => each.type !== "null"), page, deep + 1);
  if (form.type === "object") {
    const wanted = Object.entries(form.properties ?? {}).filter(([name]) => form.required?.includes(name));
    return Object.fromEntries(wanted.map(([name, each]) => [name, example(each, page, deep + 1)]));
  }
  return { string: "", integer: 0, number: 0, boolean: false, array: [] }[form.type] ?? null;
}

function field(parameter) {
  const id = `${parameter.in}:${parameter.name}`;
  return make("label", { class: "field" }, make("span", {}, parameter.name),
    make("input", { name: id, required: parameter.required, placeholder: words(parameter.schema), autocomplete: "off" }));
}

function given(form, kind) {
  const fields = [...form.querySelectorAll("input")].filter((each) => each.name.startsWith(`${kind}:`));
  return fields.map((each) => [each.name.slice(kind.length + 1), each.value]).filter(([, value]) => value !== "");
}

function address(path, form) {
  const parts = Object.fromEntries(given(form, "path"));
  const query = new URLSearchParams(given(form, "query"));
  return path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parts[name] ?? "")) + (query.size ? `?${query}` : "");
}

async function read(response) {
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) return response.text();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const end = setTimeout(() => reader.cancel(), STREAMED_MS);
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
  }
  clearTimeout(end);
  return text;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function attempt(event, path, method, output) {
  event.preventDefault();
  const form = event.target;
  const body = form.querySelector("textarea")?.value;
  const began = performance.now();
  output.hidden = false;
  output.textContent = "…";
  try {
    const response = await send(address(path, form), { method, body, headers: Object.fromEntries(given(form, "header")) });
    const text = pretty(await read(response));
    const head = `${response.status} ${response.statusText} · ${Math.round(performance.now() - began)} ms · ${response.headers.get("Content-Type") ?? "no body"}`;
    const link = response.headers.get("Link");
    output.textContent = `${head}${link ? `\nLink: ${link}` : ""}\n\n${text.slice(0, SHOWN)}${text.length > SHOWN ? "\n…" : ""}`;
  } catch (error) {
    output.textContent = error.message;
  }
}

function route(path, method, operation, page) {
  const body = operation.requestBody?.content["application/json"].schema;
  const answer = Object.entries(operation.responses).find(([status]) => status < "300");
  const form = answer[1].content["application/json"]?.schema;
  const output = make("pre", { class: "proof", hidden: true });
  const inputs = make("form", { onsubmit: (event) => attempt(event, path, method.toUpperCase(), output) },
    ...(operation.parameters ?? []).map(field),
    body ? make("label", { class: "field" }, make("span", {}, `body (${words(body)})`)) : null,
    body ? make("textarea", { rows: 6, spellcheck: "false" }, JSON.stringify(example(body, page), null, 2)) : null,
    make("p", { class: "buttons" }, make("button", { class: method === "get" ? "" : "main" }, method === "get" ? "Ask" : "Order")));
  const refusals = Object.entries(operation.responses).filter(([status]) => status >= "300").map(([status, each]) => `${status} ${each.description}`);
  return make("details", { class: "route", id: operation.operationId },
    make("summary", {}, make("strong", { class: `method ${method}` }, method.toUpperCase()), make("code", {}, path), make("span", { class: "muted" }, operation.summary)),
    make("p", { class: "muted" }, `${operation.description} Answers ${answer[0]}: ${form ? words(form) : "a stream of events"}.`),
    inputs, output, make("p", { class: "muted small" }, refusals.join(" · ")));
}

function shapes(page) {
  return Object.entries(page.components.schemas).sort().map(([name, schema]) => make("details", { id: `form-${name}` },
    make("summary", {}, make("code", {}, name)),
    schema.description ? make("p", { class: "muted" }, schema.description) : null,
    make("dl", {}, ...Object.entries(schema.properties ?? {}).flatMap(([key, each]) =>
      [make("dt", {}, schema.required?.includes(key) ? key : `${key}?`), make("dd", {}, words(each))]))));
}

async function draw() {
  const page = await call("/openapi.json");
  const groups = new Map();
  for (const [path, operations] of Object.entries(page.paths))
    for (const [method, operation] of Object.entries(operations)) {
      const group = operation.tags[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(route(path, method, operation, page));
    }
  byId("routes").replaceChildren(...[...groups].map(([name, routes]) => make("section", { class: "group" }, make("h2", {}, name), ...routes)));
  byId("forms").replaceChildren(...shapes(page));
  byId("link").className = "link good";
  byId("link").textContent = `version ${page.info.version}`;
  if (location.hash) byId(location.hash.slice(1))?.setAttribute("open", "");
}

draw().catch((error) => {
  byId("link").className = "link bad";
  byId("link").textContent = error.message;
});
