// What Grafana's application does before it shows anything: theme, registries, services.
import * as grafana from "@grafana/data";
import { initPluginTranslations } from "@grafana/i18n";
import * as runtime from "@grafana/runtime";
import { catchError, from, map, of } from "rxjs";

import { Prometheus, SETTINGS } from "./prometheus";
import { report } from "./report";

const EDITORS = "text number slider select multi-select boolean unit color strings timezone fieldColor links mappings thresholds stats-picker dashboard-uid field-name displayName actions".split(" ");

// How a standard option of a field is taken over from a board; those not named here as they are.
const OPTIONS: Record<string, { process?: unknown; defaultValue?: unknown }> = {
  unit: { process: grafana.unitOverrideProcessor },
  min: { process: grafana.numberOverrideProcessor },
  max: { process: grafana.numberOverrideProcessor },
  decimals: { process: grafana.numberOverrideProcessor },
  displayName: { process: grafana.displayNameOverrideProcessor },
  color: { defaultValue: { mode: "thresholds" } },
  noValue: {},
  links: { process: grafana.dataLinksOverrideProcessor },
  mappings: { process: grafana.valueMappingsOverrideProcessor, defaultValue: [] },
  thresholds: {
    process: grafana.thresholdsOverrideProcessor,
    defaultValue: { mode: "absolute", steps: [{ value: -Infinity, color: "green" }, { value: 80, color: "red" }] },
  },
  fieldMinMax: {},
  filterable: {},
  actions: {},
};

const asItIs = (value: unknown) => value;
const nothing = () => null;

/** The item of a registry of options that nobody edits here. */
export function option(id: string, process: unknown = asItIs, defaultValue?: unknown) {
  return { id, path: id, name: id, editor: nothing, override: nothing, process, shouldApply: () => true, settings: {}, defaultValue } as never;
}

export async function host(theme: grafana.GrafanaTheme2, plugins: Record<string, grafana.PanelPlugin>): Promise<void> {
  Object.assign(runtime.config, { theme2: theme, panels: Object.fromEntries(Object.keys(plugins).map((id) => [id, { id }])) });
  grafana.standardTransformersRegistry.setInit(() =>
    [...new Map(Object.values(grafana.standardTransformers).map((each) => [each.id, each])).values()].map(
      (each) => ({ id: each.id, name: each.name, aliasIds: each.aliasIds, transformation: async () => each, editor: nothing }) as never,
    ),
  );
  grafana.standardEditorsRegistry.setInit(() => EDITORS.map((id) => ({ id, name: id, editor: nothing }) as never));
  grafana.standardFieldConfigEditorRegistry.setInit(() =>
    Object.entries(OPTIONS).map(([id, { process, defaultValue }]) => option(id, process, defaultValue)),
  );
  await initPluginTranslations("grafana-scenes", []);
  serve(plugins);
}

function serve(plugins: Record<string, grafana.PanelPlugin>): void {
  const prometheus = new Prometheus();
  runtime.setDataSourceSrv({
    get: async () => prometheus,
    getList: () => [SETTINGS],
    getInstanceSettings: () => SETTINGS,
    reload: nothing,
    registerRuntimeDataSource: nothing,
  } as never);
  runtime.setTemplateSrv({ getVariables: () => [], replace: asItIs, containsTemplate: () => false, updateTimeRange: nothing } as never);
  runtime.setBackendSrv({ fetch: () => of({ data: {} }), get: async () => ({}), post: async () => ({}) } as never);
  runtime.setAppEvents(new grafana.EventBusSrv() as never);
  runtime.setRunRequest(((source: Prometheus, request: grafana.DataQueryRequest<never>) => {
    const answer = (state: grafana.LoadingState, series: grafana.DataFrame[], error?: Error) =>
      ({ state, series, timeRange: request.range, request, ...(error && { error, errors: [error] }) }) as grafana.PanelData;
    return from(source.query(request)).pipe(
      map((found) => answer(grafana.LoadingState.Done, found.data)),
      catchError((error: Error) => {
        report.errors.push(`query: ${error.message}`);
        return of(answer(grafana.LoadingState.Error, [], error));
      }),
    );
  }) as never);
  runtime.setPluginImportUtils({
    importPanelPlugin: async (id: string) => plugins[id] ?? Promise.reject(new Error(`no panel ${id}`)),
    getPanelPluginFromCache: (id: string) => plugins[id],
  } as never);
  const hooks = runtime as unknown as Record<string, ((hook: unknown) => void) | undefined>;
  hooks.setReturnToPreviousHook?.(() => nothing);
  hooks.setChromeHeaderHeightHook?.(() => 0);
}
