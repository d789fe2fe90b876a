// Every unit, transformation and reducer of the boards is one that @grafana/data knows. Prints what is not.
Object.defineProperty(globalThis, "navigator", { value: { language: "en-US", languages: ["en-US"], userAgent: "node" }, configurable: true });
const { readdirSync, readFileSync } = require("node:fs");
const { join } = require("node:path");
const { fieldReducers, getValueFormats, standardTransformers } = require("@grafana/data");

const BOARDS = join(__dirname, "../../../dashboards/json");
const units = new Set(getValueFormats().flatMap(({ submenu }) => submenu.map(({ value }) => value)));
const transformations = new Set(Object.values(standardTransformers).map(({ id }) => id));
const reducers = new Set(fieldReducers.list().map(({ id }) => id));

function unknown(panel) {
  const options = (panel.fieldConfig?.overrides ?? []).flatMap(({ properties }) => properties);
  const shown = [panel.fieldConfig?.defaults?.unit, ...options.filter(({ id }) => id === "unit").map(({ value }) => value)];
  const calculations = [...(panel.options?.reduceOptions?.calcs ?? []), ...(panel.options?.legend?.calcs ?? [])];
  return [
    ...shown.filter((unit) => unit && !units.has(unit)).map((unit) => `unit ${unit}`),
    ...(panel.transformations ?? []).filter(({ id }) => !transformations.has(id)).map(({ id }) => `transformation ${id}`),
    ...calculations.filter((id) => !reducers.has(id)).map((id) => `reducer ${id}`),
  ];
}

const found = readdirSync(BOARDS).flatMap((name) =>
  JSON.parse(readFileSync(join(BOARDS, name), "utf8")).panels.flatMap((panel) => unknown(panel).map((what) => `${name}: ${panel.title}: ${what}`)),
);
console.log(`${units.size} units, ${transformations.size} transformations and ${reducers.size} reducers are known`);
found.forEach((line) => console.error(line));
process.exitCode = found.length ? 1 : 0;
