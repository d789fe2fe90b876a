// Figures and decision lines as words for people.

export const share = (value) => (value === null || value === undefined ? "–" : `${Math.round(value * 100)} %`);
export const figure = (value, unit, digits = 0) =>
  value === null || value === undefined ? "–" : `${value.toFixed(digits)} ${unit}`;
export const gib = (value, digits) => `${(value / 2 ** 30).toFixed(digits)} GiB`;
export const time = (at) =>
  new Date(Math.round(at * 1000)).toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit", second: "2-digit" }) +
  `.${String(Math.round(at * 1000) % 1000).padStart(3, "0")}`;
export const day = (at) => new Date(at * 1000).toLocaleDateString();

export function age(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return seconds < 86400 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} d`;
}

const GROUPS = {
  good: ["healthy", "ready", "live", "done", "in_service"],
  warn: ["degraded", "stalled", "waiting", "warning", "probation"],
  held: ["cordoned", "fenced", "quarantined", "stranded", "would"],
  busy: ["draining", "repairing", "validating", "starting", "ordered", "running"],
  bad: ["failed", "lost", "crash_loop", "critical", "error", "timed_out", "refused"],
};

// The colour group of a state word; the word itself is always shown beside the colour.
export const tone = (word) => Object.keys(GROUPS).find((group) => GROUPS[group].includes(word)) ?? "none";

// Short names for subjects: "GPU 3" for a UUID of the fleet.
export function naming(fleet) {
  const names = new Map();
  for (const node of fleet?.nodes ?? []) {
    for (const gpu of node.gpus) names.set(gpu.uuid, fleet.nodes.length > 1 ? `${node.node} GPU ${gpu.index}` : `GPU ${gpu.index}`);
  }
  return (subject) => {
    const [kind, id] = Object.entries(subject ?? {})[0] ?? ["fleet", "fleet"];
    if (kind === "gpu") return names.get(id) ?? id.slice(0, 12);
    return kind === "fleet" ? "fleet" : `${kind} ${id}`;
  };
}

const TELL = {
  event: ({ event }) =>
    `saw ${event.code}${event.count > 1 ? ` ×${event.count}` : ""}: ${event.severity}, advice ${event.recovery}. ${event.text}`,
  condition: (line) => `condition ${line.code} ${line.state} (clears on ${line.clears_on})`,
  incident: (line) => `incident ${line.state}: ${line.code}${line.closed_because ? `, ${line.closed_because}` : ""}`,
  state: (line) => `${line.from ?? "new"} → ${line.to}: ${line.why}`,
  hold: (line) => `hold ${line.op} by ${line.owner}: ${line.reason}`,
  action: (line, name) =>
    `${line.of} ${line.state}${target(line, name)}: ${line.why}${disrupts(line, name)}${budget(line)}`,
  note: (line) => `${line.code}: ${line.text}`,
};

const target = ({ target: to }, name) =>
  to ? ` on ${to.node} ${to.gpus.map((gpu) => name({ gpu })).join(" + ")}` : "";
const disrupts = (line, name) => (line.disrupts?.length ? ` — disrupts ${line.disrupts.map(name).join(", ")}` : "");
const budget = ({ budget: b }) => (b ? ` [${b.of}: ${b.used} of ${b.limit}]` : "");

// One decision line as a sentence.
export const sentence = (line, name) => (TELL[line.kind] ?? ((other) => other.kind))(line, name);

// The raw evidence of an event line, as it was read.
export const evidence = (line) =>
  line.kind === "event" ? (line.event.evidence ?? []).filter((proof) => proof.line).map((proof) => proof.line) : [];

// The word that colours a line.
export const weight = (line) =>
  ({ event: line.event?.severity, condition: line.state === "cleared" ? "done" : line.severity, incident: line.state === "closed" ? "done" : line.severity,
     state: line.to, hold: line.op === "placed" ? "cordoned" : "done", action: line.state })[line.kind] ?? "none";
