// Shows the board of ?board=UID in ?theme=light|dark between ?from and ?to, with ?var-NAME as chosen.
import { createTheme, ThemeContext } from "@grafana/data";
import type { Dashboard, Panel } from "@grafana/schema";
import { LocationServiceProvider, locationService } from "@grafana/runtime";
import {
  CustomVariable, DataSourceVariable, EmbeddedScene, QueryVariable, SceneControlsSpacer, SceneDataTransformer,
  SceneGridItem, SceneGridLayout, SceneGridRow, SceneQueryRunner, SceneTimePicker, SceneTimeRange, SceneVariableSet,
  VariableValueSelectors, VizPanel,
} from "@grafana/scenes";
import { GlobalStyles, PortalContainer } from "@grafana/ui";
import { createRoot } from "react-dom/client";
import { MemoryRouter } from "react-router-dom";

import { host } from "./host";
import { plugins } from "./plugins";
import { SETTINGS } from "./prometheus";
import { report } from "./report";

const asked = new URLSearchParams(window.location.search);

function variable(each: any) {
  const chosen = asked.get(`var-${each.name}`) ?? undefined;
  if (each.type === "datasource") {
    return new DataSourceVariable({ name: each.name, label: each.label, pluginId: each.query, value: SETTINGS.uid, text: SETTINGS.name });
  }
  if (each.type === "query") {
    const query = { query: each.query, refId: "A" };
    return new QueryVariable({ ...common(each), query, datasource: each.datasource, refresh: each.refresh, value: chosen, text: chosen });
  }
  return new CustomVariable({ ...common(each), query: each.query, value: chosen, text: chosen });
}

function common(each: any) {
  return { name: each.name, label: each.label, isMulti: each.multi, includeAll: each.includeAll };
}

function item(panel: any) {
  const { x, y, w: width, h: height } = panel.gridPos;
  if (panel.type === "row") {
    return new SceneGridRow({ key: `row-${panel.id}`, title: panel.title, x, y });
  }
  const queries = new SceneQueryRunner({ datasource: panel.datasource, queries: panel.targets, maxDataPoints: panel.maxDataPoints ?? 400, minInterval: panel.interval });
  const body = new VizPanel({
    key: `panel-${panel.id}`,
    title: panel.title,
    description: panel.description,
    pluginId: panel.type,
    options: panel.options ?? {},
    fieldConfig: { defaults: panel.fieldConfig?.defaults ?? {}, overrides: panel.fieldConfig?.overrides ?? [] },
    $data: new SceneDataTransformer({ $data: queries, transformations: panel.transformations ?? [] }),
  });
  return new SceneGridItem({ key: `item-${panel.id}`, x, y, width, height, body });
}

async function main(): Promise<void> {
  const theme = createTheme({ colors: { mode: asked.get("theme") === "dark" ? "dark" : "light" } });
  document.body.style.background = theme.colors.background.canvas;
  await host(theme, plugins(theme));
  const board: Dashboard = await (await fetch(`/boards/${asked.get("board")}.json`)).json();
  const panels = (board.panels ?? []) as Panel[];
  const scene = new EmbeddedScene({
    $timeRange: new SceneTimeRange({
      from: new Date(Number(asked.get("from"))).toISOString(),
      to: new Date(Number(asked.get("to"))).toISOString(),
      timeZone: "utc",
    }),
    $variables: new SceneVariableSet({ variables: (board.templating?.list ?? []).map(variable) }),
    controls: [new VariableValueSelectors({}), new SceneControlsSpacer(), new SceneTimePicker({})],
    body: new SceneGridLayout({ isDraggable: false, children: panels.map(item) }),
  });
  createRoot(document.getElementById("root")!).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PortalContainer />
      <MemoryRouter>
        <LocationServiceProvider service={locationService}>
          <h1 style={{ font: "500 20px Inter, 'DejaVu Sans', sans-serif", margin: "12px 16px 0", color: theme.colors.text.primary }}>{board.title}</h1>
          <div style={{ display: "flex", padding: "0 8px" }}>
            <scene.Component model={scene} />
          </div>
        </LocationServiceProvider>
      </MemoryRouter>
    </ThemeContext.Provider>,
  );
  report.ready = true;
}

main().catch((error: Error) => report.errors.push(`main: ${error.stack ?? error}`));
