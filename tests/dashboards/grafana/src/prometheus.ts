// A data source that asks Prometheus through /prometheus, and answers in frames as Grafana's own does.
import { DataSourceApi, FieldType, LoadingState, toDataFrame } from "@grafana/data";
import type { DataFrame, DataQueryRequest, DataQueryResponse, DataSourceInstanceSettings, MetricFindValue, ScopedVars } from "@grafana/data";
import type { DataQuery } from "@grafana/schema";
import { sceneGraph } from "@grafana/scenes";

const RATE_INTERVAL = "20s"; // the run is scraped each second, and is minutes long

interface Query extends DataQuery {
  expr: string;
  instant?: boolean;
  format?: string;
  legendFormat?: string;
}

interface Series {
  metric: Record<string, string>;
  value: [number, string];
  values?: Array<[number, string]>;
}

export const SETTINGS = {
  id: 1,
  uid: "prometheus",
  type: "prometheus",
  name: "Prometheus",
  meta: { id: "prometheus", name: "Prometheus", info: { logos: { small: "", large: "" } }, module: "", baseUrl: "" },
  jsonData: {},
  access: "proxy",
  readOnly: false,
  isDefault: true,
} as unknown as DataSourceInstanceSettings;

async function ask<T>(path: string, parameters: Record<string, string>): Promise<T> {
  const answer = await (await fetch(`/prometheus/api/v1/${path}?${new URLSearchParams(parameters)}`)).json();
  if (answer.status !== "success") {
    throw new Error(answer.error);
  }
  return answer.data as T;
}

export class Prometheus extends DataSourceApi<Query> {
  constructor() {
    super(SETTINGS);
    this.meta = SETTINGS.meta;
    this.interval = "1s";
  }

  async query(request: DataQueryRequest<Query>): Promise<DataQueryResponse> {
    const [from, to] = [request.range.from.valueOf() / 1000, request.range.to.valueOf() / 1000];
    const step = Math.max(1, Math.round((request.intervalMs || 1000) / 1000));
    const frames: DataFrame[] = [];
    for (const target of request.targets) {
      const expression = interpolated(target.expr, request.scopedVars)
        .replaceAll("$__rate_interval", RATE_INTERVAL)
        .replaceAll("$__interval", `${step}s`)
        .replaceAll("$__range_s", String(Math.round(to - from)))
        .replaceAll("$__range", `${Math.round(to - from)}s`);
      const { result } = target.instant
        ? await ask<{ result: Series[] }>("query", { query: expression, time: String(to) })
        : await ask<{ result: Series[] }>("query_range", { query: expression, start: String(from), end: String(to), step: String(step) });
      frames.push(...(target.format === "table" ? tables(target, result, request.targets.length > 1) : series(target, result, step)));
    }
    return { data: frames, state: LoadingState.Done };
  }

  async metricFindQuery(asked: string | { query: string }, options?: { scopedVars?: ScopedVars }): Promise<MetricFindValue[]> {
    const text = interpolated(typeof asked === "string" ? asked : asked.query, options?.scopedVars);
    const [, metric, label] = /^label_values\((.+), (\w+)\)$/.exec(text)!;
    const values = await ask<string[]>(`label/${label}/values`, { "match[]": metric });
    return values.map((value) => ({ text: value, value }));
  }

  async testDatasource() {
    return { status: "success", message: "" };
  }
}

function interpolated(text: string, variables?: ScopedVars): string {
  const scene = variables?.__sceneObject?.value?.valueOf?.();
  return scene ? sceneGraph.interpolate(scene, text, variables) : text;
}

/** A row a series. Of several queries each names its value after itself, as Grafana's own data source does. */
function tables(target: Query, result: Series[], several: boolean): DataFrame[] {
  if (result.length === 0) {
    return [];
  }
  const labels = [...new Set(result.flatMap((each) => Object.keys(each.metric)))];
  const fields = [
    { name: "Time", type: FieldType.time, values: result.map((each) => each.value[0] * 1000) },
    ...labels.map((label) => ({ name: label, type: FieldType.string, values: result.map((each) => each.metric[label] ?? "") })),
    { name: several ? `Value #${target.refId}` : "Value", type: FieldType.number, values: result.map((each) => Number(each.value[1])) },
  ];
  return [toDataFrame({ refId: target.refId, fields })];
}

function series(target: Query, result: Series[], step: number): DataFrame[] {
  return result.map((each) => {
    const points = each.values ?? [each.value];
    const name = (target.legendFormat ?? "").replace(/{{\s*(\w+)\s*}}/g, (_, label: string) => each.metric[label] ?? "");
    return toDataFrame({
      refId: target.refId,
      fields: [
        { name: "Time", type: FieldType.time, config: { interval: step * 1000 }, values: points.map(([at]) => at * 1000) },
        { name: "Value", type: FieldType.number, labels: each.metric, config: { displayNameFromDS: name }, values: points.map(([, value]) => (value === "NaN" ? null : Number(value))) },
      ],
    });
  });
}
