// The kinds of panel that the boards use, over what @grafana/ui publishes; what it does not publish is in drawn.tsx.
import { FieldColorModeId, FieldConfigProperty, FieldType, getFieldDisplayValues, PanelPlugin, VizOrientation } from "@grafana/data";
import type { GrafanaTheme2, PanelProps } from "@grafana/data";
import { BarGauge, BigValue, TimeSeries, VizRepeater } from "@grafana/ui";
import { TableNG } from "@grafana/ui/unstable";
import type { ComponentType } from "react";

import { Heatmap, Scatter, StateTimeline } from "./drawn";
import { option } from "./host";
import { report } from "./report";

const SERIES = {
  drawStyle: "line", lineInterpolation: "linear", lineWidth: 1, lineStyle: undefined, fillOpacity: 0, gradientMode: "none",
  spanNulls: false, insertNulls: false, showPoints: "auto", pointSize: 5, axisPlacement: "auto", axisColorMode: "text",
  axisLabel: "", axisWidth: undefined, axisSoftMin: undefined, axisSoftMax: undefined, axisGridShow: undefined,
  axisCenteredZero: false, axisBorderShow: false, barAlignment: 0, barWidthFactor: 0.6, barMaxWidth: undefined,
  scaleDistribution: { type: "linear" }, stacking: { mode: "none", group: "A" }, thresholdsStyle: { mode: "off" },
  transform: undefined, hideFrom: { tooltip: false, viz: false, legend: false },
};
const TABLE = { align: "auto", filterable: false, inspect: false, width: undefined, minWidth: 50, cellOptions: { type: "auto" }, hidden: false, hideFrom: undefined };
const STRIPS = { fillOpacity: 70, lineWidth: 0, hideFrom: undefined };
const POINTS = { show: "points", pointSize: { fixed: 5 }, pointShape: "circle", pointStrokeWidth: 1, fillOpacity: 50, lineWidth: 1, axisLabel: "", scaleDistribution: { type: "linear" }, hideFrom: undefined };

type Props = PanelProps<any>;

const Empty = ({ words }: { words?: string }) => (
  <div style={{ display: "grid", placeItems: "center", height: "100%", opacity: 0.7 }}>{words ?? "No data"}</div>
);

function lines(props: Props) {
  const { data, options, timeRange, timeZone, width, height } = props;
  const legend = { displayMode: "list", placement: "bottom", showLegend: true, calcs: [], ...options.legend };
  return (
    <TimeSeries frames={data.series} structureRev={data.structureRev} timeRange={timeRange} timeZone={timeZone} width={width} height={height} legend={legend} options={options} />
  );
}

function numbers(theme: GrafanaTheme2) {
  return function Numbers({ data, fieldConfig, options, replaceVariables, timeZone, width, height }: Props) {
    const values = () =>
      getFieldDisplayValues({ fieldConfig, reduceOptions: options.reduceOptions, replaceVariables, theme, data: data.series, timeZone });
    return (
      <VizRepeater
        getValues={values}
        width={width}
        height={height}
        source={data}
        renderCounter={0}
        orientation={VizOrientation.Auto}
        renderValue={(one: any) => (
          <BigValue value={one.value.display} width={one.width} height={one.height} theme={theme} colorMode={options.colorMode} graphMode={options.graphMode} justifyMode={options.justifyMode} textMode={options.textMode} />
        )}
      />
    );
  };
}

function besides(theme: GrafanaTheme2) {
  return function Besides({ data, fieldConfig, options, replaceVariables, timeZone, width, height }: Props) {
    const values = () =>
      getFieldDisplayValues({ fieldConfig, reduceOptions: options.reduceOptions, replaceVariables, theme, data: data.series, timeZone });
    return (
      <VizRepeater
        getValues={values}
        width={width}
        height={height}
        source={data}
        renderCounter={0}
        orientation={options.orientation}
        itemSpacing={8}
        minVizHeight={16}
        maxVizHeight={40}
        renderValue={(one: any) => (
          <BarGauge value={one.value.display} field={one.value.field} display={one.value.view?.getFieldDisplayProcessor(one.value.colIndex)} width={one.width} height={one.height} orientation={options.orientation} theme={theme} displayMode={options.displayMode} />
        )}
      />
    );
  };
}

function rows({ data, fieldConfig, options, width, height }: Props) {
  return <TableNG data={data.series[0]} width={width} height={height} noValue={fieldConfig.defaults.noValue} cellHeight={options.cellHeight} fieldConfig={fieldConfig} enableVirtualization={false} />;
}

/** The panel, and a note of what it was given. `alone`: it is drawn without series too (a number says "no reading"). */
function watched(Panel: ComponentType<Props>, alone: boolean): ComponentType<Props> {
  return function Watched(props: Props) {
    const { data, title, id, fieldConfig } = props;
    const filled = data.series.filter((frame) => frame.length > 0 && frame.fields.some((field) => field.type !== FieldType.time));
    report.panels[id] = { title, state: data.state, series: filled.length, error: data.errors?.[0]?.message };
    return filled.length > 0 || alone ? <Panel {...props} /> : <Empty words={fieldConfig.defaults.noValue} />;
  };
}

/** `color`: how a field is coloured if the board does not say; most kinds go by thresholds. */
function plugin(id: string, Panel: ComponentType<Props>, custom: Record<string, unknown>, { alone = false, color = FieldColorModeId.Thresholds } = {}): PanelPlugin {
  const made = new PanelPlugin(watched(Panel, alone)).useFieldConfig({
    standardOptions: { [FieldConfigProperty.Color]: { defaultValue: { mode: color } } },
    useCustomConfig: (builder) => {
      for (const [name, value] of Object.entries(custom)) {
        builder.addCustomEditor(option(name, undefined, value));
      }
    },
  });
  made.meta = { id, name: id, info: { version: "1" }, skipDataQuery: false } as never;
  return made;
}

export function plugins(theme: GrafanaTheme2): Record<string, PanelPlugin> {
  return {
    timeseries: plugin("timeseries", lines, SERIES, { color: FieldColorModeId.PaletteClassic }),
    stat: plugin("stat", numbers(theme), {}, { alone: true }),
    bargauge: plugin("bargauge", besides(theme), {}),
    table: plugin("table", rows, TABLE),
    "state-timeline": plugin("state-timeline", StateTimeline, STRIPS),
    heatmap: plugin("heatmap", Heatmap, { hideFrom: undefined, scaleDistribution: undefined }),
    xychart: plugin("xychart", Scatter, POINTS),
  };
}
