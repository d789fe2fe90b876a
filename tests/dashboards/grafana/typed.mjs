// Holds every board against the types of @grafana/schema: a key that is misspelt or has another type is an error.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "../../..");
const BOARDS = join(ROOT, "dashboards/json");
const TYPES = "../node_modules/@grafana/schema/dist/types/raw"; // by its path: the package exports no names for them
const OUT = join(HERE, "typed");

// The generated types of a panel lie under its name without the hyphen.
const folder = (type) => type.replaceAll("-", "");
const known = (type) => existsSync(join(HERE, `typed/${TYPES}/composable/${folder(type)}/panelcfg/x`));

// A data source adds keys of its own to an annotation; the schema is open to them, its types are not.
const PROMETHEUS = ["expr", "step", "titleFormat", "textFormat", "useValueForTime"];
const common = (mark) => Object.fromEntries(Object.entries(mark).filter(([key]) => !PROMETHEUS.includes(key)));

function checked(board) {
  const panels = board.panels.filter(({ type }) => type !== "row");
  const types = [...new Set(panels.map(({ type }) => type))].filter(known);
  const lines = [
    `import type * as DB from "${TYPES}/dashboard/x/types.gen";`,
    ...types.map((type) => `import type * as ${folder(type)} from "${TYPES}/composable/${folder(type)}/panelcfg/x/types.gen";`),
    // JSON has words where the types have enumerations: `${T}` is their words.
    "type Part<T> = T extends string ? `${T}` : T extends (infer E)[] ? Part<E>[] : T extends object ? { [K in keyof T]?: Part<T[K]> } : T;",
    `export const board = ${JSON.stringify({ ...board, panels: [], annotations: { list: board.annotations.list.map(common) } })} satisfies Part<DB.Dashboard>;`,
  ];
  panels.forEach((panel, place) => {
    lines.push(`export const panel${place} = ${JSON.stringify(panel)} satisfies Part<DB.Panel>;`);
    if (known(panel.type)) {
      lines.push(`export const options${place} = ${JSON.stringify(panel.options ?? {})} satisfies Part<${folder(panel.type)}.Options>;`);
    }
    const custom = panel.fieldConfig?.defaults?.custom;
    if (custom && known(panel.type)) {
      lines.push(`export const custom${place} = ${JSON.stringify(custom)} satisfies Part<${folder(panel.type)}.FieldConfig>;`);
    }
  });
  return lines.join("\n") + "\n";
}

mkdirSync(OUT, { recursive: true });
for (const name of readdirSync(BOARDS)) {
  writeFileSync(join(OUT, name.replace(".json", ".ts")), checked(JSON.parse(readFileSync(join(BOARDS, name), "utf8"))));
}
const done = spawnSync(join(HERE, "node_modules/.bin/tsc"), ["-p", join(HERE, "tsconfig.boards.json")], { stdio: "inherit" });
console.log(done.status === 0 ? "the boards have the types of @grafana/schema" : "a board is not as @grafana/schema has it");
process.exitCode = done.status;
