// The live fleet page.

import { createCard, updateCard } from "./card.js";
import { ask, byId, fill, keep, make } from "./dom.js";
import { call, live } from "./live.js";
import { drawStory } from "./story.js";
import { age, naming, tone } from "./words.js";

const opened = new Set(); // incidents whose timeline is shown
let refresh = () => {};

async function order(path, method, body) {
  try {
    await call(path, method, body);
  } catch (error) {
    alert(error.message);
  }
  refresh();
}

async function orderWithReason(question, path, body = {}) {
  const reason = await ask(question);
  if (reason) await order(path, "POST", { ...body, reason });
}

function drawBanners(fleet) {
  const virtual = fleet.nodes.filter((node) => node.virtual).map((node) => node.node);
  fill(byId("banners"), [fleet.pauses, virtual], () => [
    ...fleet.pauses.map(drawPause),
    virtual.length
      ? make("div", { class: "banner virtual" }, make("strong", {}, "VIRTUAL"), ` no real GPU is behind ${virtual.join(", ")}: its GPUs, readings and faults are simulated. The replicas are real.`)
      : null,
  ]);
  byId("pause").hidden = fleet.paused;
}

// One pause: of everything, a pool or a node; one by a file ends when the file does.
function drawPause({ scope, name, why }) {
  const where = scope === "fleet" ? "everywhere" : scope === "pool" ? `in pool ${name}` : `on ${name}`;
  const body = name ? { [scope]: name } : {};
  const question = { title: `Let automation act again ${where}`, text: "Why? It is kept in the audit.", yes: "Resume" };
  return make("div", { class: "banner paused", role: "alert" }, make("strong", {}, "PAUSED"),
    ` ${where}: nothing harmful is done; releases and recovery go on. ${why} `,
    scope === "file" ? null : make("button", { onclick: () => orderWithReason(question, "/api/v1/resume", body) }, "Resume"));
}

function drawSummary(fleet) {
  const states = fleet.nodes.flatMap((node) => node.gpus.map((gpu) => gpu.state));
  const counts = new Map();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  fill(byId("summary"), [[...counts], fleet.counts, fleet.controller], () => [
    make("span", {}, `${fleet.counts.in_service} of ${fleet.counts.total} GPUs in service, ${fleet.counts.free} free`),
    ...(fleet.controller && fleet.controller !== "decides" ? [make("span", {}, `this controller ${fleet.controller}`)] : []),
    ...[...counts].map(([state, count]) => make("span", { class: "dot", "data-tone": tone(state) }, `${count} ${state.replace("_", " ")}`)),
  ]);
}

function drawNodes(fleet) {
  const nodes = byId("nodes");
  if (!fleet.nodes.length) {
    nodes.replaceChildren(make("p", { class: "empty" }, "No node has reported yet. Start an agent that names this controller."));
    return;
  }
  nodes.querySelector(":scope > .empty")?.remove();
  keep(nodes, fleet.nodes, (node) => node.node, createNode, updateNode);
}

const createNode = () => make("section", { class: "node" }, make("header", {}), make("div", { class: "gpus" }));

function updateNode(element, node) {
  const [head, gpus] = element.children;
  fill(head, [node.node, node.virtual, node.state, node.level, node.driver, node.unknown_because, node.holds, node.conditions, node.others], () => [
    make("h2", {}, node.node),
    node.virtual ? make("span", { class: "mark virtual" }, "VIRTUAL") : null,
    make("span", { class: "dot", "data-tone": tone(node.state) }, node.state),
    make("span", { class: "muted" }, `level ${node.level}`),
    make("span", { class: "muted" }, node.driver ? `driver ${node.driver}` : "no driver"),
    node.unknown_because ? make("span", { class: "muted" }, node.unknown_because) : null,
    ...node.holds.map((hold) => make("span", { class: "tag hold", title: `hold ${hold.id}` }, `⊘ ${hold.owner}: ${hold.reason}`)),
    ...node.conditions.map((each) => make("span", { class: "tag condition", "data-tone": tone(each.severity), title: node.others.join("; ") }, each.code)),
  ]);
  keep(gpus, node.gpus, (gpu) => gpu.uuid, createCard, updateCard);
}

function drawDeployments(fleet) {
  const mine = (name) => fleet.replicas.filter((replica) => replica.deployment === name && !replica.observed);
  keep(byId("deployments"), fleet.deployments, (each) => each.name, () => make("div", { class: "deployment" }, make("div", { class: "row" }), make("div", { class: "tags" })), (element, each) => {
    const good = each.ready >= each.wanted ? "good" : each.ready < each.min_ready ? "bad" : "warn";
    const [row, tags] = element.children;
    fill(row, [each.ready, each.wanted, each.min_ready], () => [
      make("strong", { class: "dot", "data-tone": good }, each.name),
      make("span", { class: "muted" }, `floor ${each.min_ready}`),
      make("span", { class: "spring" }),
      make("span", { class: "ready", "data-tone": good }, `${each.ready} / ${each.wanted} ready`),
    ]);
    fill(tags, [mine(each.name), each.short_because], () => [
      ...mine(each.name).map((replica) =>
        make("span", { class: "tag", "data-tone": tone(replica.state), title: replica.url }, `${replica.replica} ${replica.state}`)),
      each.short_because ? make("span", { class: "muted" }, each.short_because) : null,
    ]);
  });
}

function drawObserved(fleet, name) {
  const found = fleet.replicas.filter((replica) => replica.observed);
  byId("observed-part").hidden = !found.length;
  byId("observed-count").textContent = found.length || "";
  keep(byId("observed"), found, (each) => each.replica, () => make("div", { class: "item" }), (element, each) => {
    element.dataset.tone = tone(each.state);
    fill(element, [each.state, each.model, each.owner, each.engine, each.gpus, each.serves], () => [
      make("div", { class: "row" }, make("strong", { title: each.url }, each.replica), make("span", { class: "spring" }), each.serves ? make("span", { class: "word" }, each.state) : null),
      make("p", {}, `${each.serves ? `${each.engine} serves ${each.model || "a model"}` : "works"} on ${each.gpus.map((gpu) => name({ gpu })).join(", ")}`),
      make("p", { class: "muted" }, `${each.owner} · observed: Corral never signals it`),
    ]);
  });
}

const APPROVABLE = new Set(["reset_gpu", "reboot_node"]); // what waits otherwise waits for room, for a budget or for hands

function drawWaiting(fleet, name) {
  byId("waiting-count").textContent = fleet.actions_waiting.length || "";
  keep(byId("waiting"), fleet.actions_waiting, (each) => each.id, () => make("div", { class: "item", "data-tone": "warn" }), (element, each) =>
    fill(element, each, () => [
      make("div", { class: "row" }, make("strong", {}, each.of), make("span", { class: "muted" }, name(each.subject)), make("span", { class: "spring" }),
        APPROVABLE.has(each.of) ? make("button", { onclick: () => approve(each, name) }, "Approve …") : null),
      make("p", {}, each.why),
      each.disrupts?.length ? make("p", { class: "muted" }, `disrupts ${each.disrupts.map(name).join(", ")}`) : null,
    ]));
}

const approve = (action, name) =>
  orderWithReason({ title: `Approve ${action.of} of ${name(action.subject)}`, text: "This disrupts what the action lists. Why may it go on? It is kept in the audit.", yes: "Approve" },
    "/api/v1/approvals", { action: action.id });

function drawIncidents(fleet, name) {
  byId("incident-count").textContent = fleet.incidents_open.length || "";
  keep(byId("incidents"), fleet.incidents_open, (each) => each.id, createIncident, (element, each) => {
    element.dataset.tone = tone(each.severity);
    const [row, why, story] = element.children;
    fill(row, [each.code, each.severity, each.subject, opened.has(each.id), name(each.subject)], () => [
      make("strong", {}, each.code), make("span", { class: "muted" }, name(each.subject)), make("span", { class: "spring" }),
      make("span", { class: "word" }, each.severity), make("span", { class: "muted" }, age(Date.now() / 1000 - each.at)), make("span", { class: "muted" }, opened.has(each.id) ? "▾" : "▸"),
    ]);
    why.textContent = each.id in fleet.halted ? `Goes no further by itself: ${fleet.halted[each.id]}` : "";
    why.hidden = !why.textContent;
    row.setAttribute("aria-expanded", opened.has(each.id));
    story.hidden = !opened.has(each.id);
  });
}

function createIncident(incident) {
  const toggle = () => {
    if (!opened.delete(incident.id)) opened.add(incident.id);
    refresh();
  };
  return make("div", { class: "item incident" }, make("button", { class: "row", onclick: toggle }), make("p", { class: "muted small" }), make("div", { class: "story small" }));
}

async function drawStories(fleet, name) {
  for (const { id } of fleet.incidents_open.filter((each) => opened.has(each.id))) {
    const told = await call(`/api/v1/incidents/${encodeURIComponent(id)}`);
    drawStory(byId("incidents").querySelector(`[data-key="${CSS.escape(id)}"] .story`), told.lines, name);
  }
}

async function draw() {
  const fleet = await call("/api/v1/fleet");
  const name = naming(fleet);
  drawBanners(fleet);
  drawSummary(fleet);
  drawNodes(fleet);
  drawDeployments(fleet);
  drawObserved(fleet, name);
  drawWaiting(fleet, name);
  drawIncidents(fleet, name);
  await drawStories(fleet, name);
}

byId("pause").addEventListener("click", () =>
  orderWithReason({ title: "Pause automation", text: "Fences, holds, drains and repairs stop; releases go on. Why?", yes: "Pause" }, "/api/v1/pause"));
refresh = live(draw);
