// One GPU as a card: what state it is in, what it really does, who holds it and what runs on it.

import { fill, make } from "./dom.js";
import { figure, gib, share, tone } from "./words.js";

function meter(label, title) {
  return make("div", { class: "meter", title }, make("span", { class: "label" }, label),
    make("span", { class: "track" }, make("span", { class: "bar" })), make("span", { class: "value" }));
}

function set(element, ratio, text) {
  const known = ratio !== null && ratio !== undefined;
  element.classList.toggle("unknown", !known);
  element.querySelector(".bar").style.width = known ? `${Math.min(100, Math.max(0, ratio * 100))}%` : "0";
  element.querySelector(".value").textContent = text;
}

export function createCard(gpu) {
  return make("article", { class: "gpu" },
    make("header", {}, make("a", { class: "index", href: `/gpus/${encodeURIComponent(gpu.uuid)}` }), make("span", { class: "word" })),
    make("p", { class: "board" }),
    make("div", { class: "meters" },
      meter("util", "Share of time in which any kernel ran: 100 % does not mean that the GPU works hard"),
      meter("SM active", "Share of SM cycles with work: what the GPU really does"),
      meter("memory", "Device memory in use")),
    make("p", { class: "figures" }, make("span", { title: "GPU temperature" }), make("span", { title: "Power draw and its limit" })),
    make("p", { class: "activity", title: "What it does with its time, by SM, tensor and memory activity, clock and power" }),
    make("div", { class: "tags" }));
}

export function updateCard(card, gpu) {
  const readings = gpu.readings ?? {};
  card.dataset.tone = tone(gpu.state);
  card.dataset.state = gpu.state;
  card.classList.toggle("stale", !gpu.fresh);
  card.querySelector(".index").textContent = `GPU ${gpu.index}`;
  card.querySelector(".word").textContent = gpu.state.replace("_", " ");
  const board = card.querySelector(".board");
  board.textContent = `${(gpu.name ?? "GPU").replace(/^NVIDIA /, "")} · ${gpu.pci}`;
  board.title = gpu.uuid;
  const [utilization, active, memory] = card.querySelectorAll(".meter");
  set(utilization, readings.utilization_ratio, share(readings.utilization_ratio));
  set(active, readings.sm_active_ratio, share(readings.sm_active_ratio));
  drawMemory(memory, readings.memory_used_bytes, readings.memory_total_bytes);
  const [temperature, power] = card.querySelectorAll(".figures span");
  temperature.textContent = figure(readings.temperature_c, "°C");
  power.textContent = readings.power_limit_w ? `${figure(readings.power_w, "")}/ ${figure(readings.power_limit_w, "W")}` : figure(readings.power_w, "W");
  const activity = card.querySelector(".activity");
  activity.textContent = gpu.fresh && gpu.activity ? gpu.activity : "";
  activity.dataset.tone = /^(hung|throttled)/.test(activity.textContent) ? "bad" : /^(launch|starved)/.test(activity.textContent) ? "warn" : "good";
  fill(card.querySelector(".tags"), [gpu.replica, gpu.holds, gpu.conditions, gpu.error], () => tags(gpu));
}

function drawMemory(element, used, total) {
  const known = used !== undefined && total > 0;
  set(element, known ? used / total : null, known ? gib(used, 0) : "–");
  element.title = known ? `Device memory in use: ${gib(used, 2)} of ${gib(total, 2)}` : "Device memory in use";
}

function tags(gpu) {
  return [
    ...(gpu.replica ? [make("span", { class: "tag replica" }, `▶ ${gpu.replica}`)] : []),
    ...gpu.holds.map((hold) => make("span", { class: "tag hold", title: `hold ${hold.id}` }, `⊘ ${hold.owner}: ${hold.reason}`)),
    ...gpu.conditions.map((condition) => make("span", { class: "tag condition", "data-tone": tone(condition.severity) }, condition.code)),
    gpu.error ? make("span", { class: "tag error" }, gpu.error) : null,
  ];
}
