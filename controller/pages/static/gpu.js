// One GPU's page: its story with the raw evidence, and all its readings.

import { createCard, updateCard } from "./card.js";
import { ask, byId, fill, make } from "./dom.js";
import { call, live } from "./live.js";
import { drawStory } from "./story.js";
import { naming } from "./words.js";

const uuid = document.body.dataset.gpu;

function pairs(list, entries) {
  fill(list, entries, () => entries.flatMap(([term, value]) => [make("dt", {}, term), make("dd", {}, String(value))]));
}

function drawGpu(node, gpu) {
  byId("name").textContent = `${node.node} · GPU ${gpu.index}`;
  fill(byId("banners"), node.virtual, () => [
    node.virtual ? make("div", { class: "banner virtual" }, make("strong", {}, "VIRTUAL"), ` no real GPU: ${node.node} is simulated.`) : null,
  ]);
  const place = byId("card");
  if (!place.firstChild) place.append(createCard(gpu));
  updateCard(place.firstChild, gpu);
  pairs(byId("identity"), [["UUID", gpu.uuid], ["board", gpu.name ?? "–"], ["PCI", gpu.pci], ["health", gpu.health], ["phase", gpu.phase], ["boot", node.boot_id]]);
  pairs(byId("readings"), Object.entries(gpu.readings ?? {}).map(([key, value]) => [key, typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : value]));
  const holds = gpu.holds.map((hold) => make("button", { class: "quiet", onclick: () => lift(hold) }, `Lift: ${hold.owner}`));
  fill(byId("lifts"), gpu.holds, () => holds);
}

async function lift(hold) {
  const reason = await ask({ title: "Lift this hold", text: `${hold.owner}: ${hold.reason}`, yes: "Lift" });
  if (!reason) return;
  const force = !hold.owner.startsWith("operator");
  await order(`/api/v1/holds/${encodeURIComponent(hold.id)}`, "DELETE", { reason, force });
}

async function order(path, method, body) {
  try {
    await call(path, method, body);
  } catch (error) {
    alert(error.message);
  }
  refresh();
}

async function draw() {
  const [fleet, lines] = await Promise.all([call("/api/v1/fleet"), call(`/api/v1/gpus/${encodeURIComponent(uuid)}/explain`)]);
  for (const node of fleet.nodes) {
    const gpu = node.gpus.find((each) => each.uuid === uuid);
    if (gpu) drawGpu(node, gpu);
  }
  drawStory(byId("story"), lines, naming(fleet));
}

byId("hold").before(make("span", { id: "lifts" }));
byId("hold").addEventListener("click", async () => {
  const reason = await ask({ title: "Hold this GPU", text: "It takes no new work until the hold is lifted. Why?", yes: "Hold" });
  if (reason) await order("/api/v1/holds", "POST", { subject: { gpu: uuid }, reason });
});
const refresh = live(draw);
