// Three kinds of panel that only Grafana's server brings: a state timeline, a heat map and a scatter, drawn simply.
// Values, colours, words and units are still those of @grafana/data, from the board's own field configuration.
import { FieldType, formattedValueToString, getFieldDisplayName } from "@grafana/data";
import type { DataFrame, Field, PanelProps, TimeRange } from "@grafana/data";
import { useTheme2, VizLegend } from "@grafana/ui";
import type { ReactNode } from "react";

type Props = PanelProps<any>;

interface Strip {
  name: string;
  times: number[];
  interval: number; // milliseconds from one time to the next
  field: Field;
}

interface Area {
  left: number;
  width: number;
  height: number;
}

const BELOW = 22; // pixels for the axis of time

function strips(frames: DataFrame[]): Strip[] {
  return frames.flatMap((frame) => {
    const time = frame.fields.find((field) => field.type === FieldType.time)!;
    const [times, interval] = [time.values as number[], time.config.interval ?? 1000];
    return frame.fields
      .filter((field) => field.type === FieldType.number)
      .map((field) => ({ name: getFieldDisplayName(field, frame, frames), times, interval, field }));
  });
}

function across(range: TimeRange, area: Area): (at: number) => number {
  const [from, to] = [range.from.valueOf(), range.to.valueOf()];
  return (at) => area.left + ((at - from) / (to - from)) * area.width;
}

const shown = (field: Field, value: number) => field.display!(value);
const text = (field: Field, value: number) => formattedValueToString(shown(field, value));

/** Words on the left of each strip, times below, and between them what `cells` draws. */
function Strips({ all, props, cells }: { all: Strip[]; props: Props; cells: (strip: Strip, area: Area, top: number, high: number) => ReactNode }) {
  const theme = useTheme2();
  const left = Math.min(props.width / 3, 12 + 7 * Math.max(...all.map((strip) => strip.name.length)));
  const area = { left, width: props.width - left - 8, height: props.height - BELOW };
  const high = area.height / all.length;
  const [from, to] = [props.timeRange.from.valueOf(), props.timeRange.to.valueOf()];
  const ticks = [0.1, 0.3, 0.5, 0.7, 0.9].map((share) => from + share * (to - from));
  const at = across(props.timeRange, area);
  return (
    <svg width={props.width} height={props.height} style={{ fontSize: 12, fill: theme.colors.text.primary }}>
      {all.map((strip, place) => (
        <g key={place}>
          <text x={left - 8} y={(place + 0.5) * high + 4} textAnchor="end">{strip.name}</text>
          {cells(strip, area, place * high, high)}
        </g>
      ))}
      {ticks.map((tick) => (
        <text key={tick} x={at(tick)} y={props.height - 6} textAnchor="middle">{new Date(tick).toISOString().slice(11, 16)}</text>
      ))}
    </svg>
  );
}

export function StateTimeline(props: Props) {
  const all = strips(props.data.series);
  const cells = (strip: Strip, area: Area, top: number, high: number) => {
    const at = across(props.timeRange, area);
    const gap = 2 * strip.interval;
    return strip.times.map((time, place) => {
      const next = strip.times[place + 1];
      const until = next !== undefined && next - time < gap ? next : time + gap / 2;
      const value = strip.field.values[place];
      return <rect key={time} x={at(time)} width={Math.max(1, at(until) - at(time) + 0.5)} y={top + high * 0.1} height={high * 0.8} fill={shown(strip.field, value).color} />;
    });
  };
  return <Strips all={all} props={props} cells={cells} />;
}

export function Heatmap(props: Props) {
  const all = strips(props.data.series).sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
  const most = Math.max(...all.flatMap((strip) => strip.field.values as number[]));
  const cells = (strip: Strip, area: Area, top: number, high: number) => {
    const at = across(props.timeRange, area);
    return strip.times.map((time, place) => {
      const value = strip.field.values[place];
      const fill = value > 0 ? `hsl(18 90% ${85 - 50 * (value / most)}%)` : "none";
      return <rect key={time} x={at(time - strip.interval)} width={Math.max(1, at(time) - at(time - strip.interval))} y={top + 1} height={high - 2} fill={fill} />;
    });
  };
  return <Strips all={all} props={props} cells={cells} />;
}

interface Scale {
  at: (value: number) => number;
  ticks: number[];
}

function scale(values: number[], low: number, high: number): Scale {
  const known = values.filter((value) => value > 0).map(Math.log10);
  const [from, to] = [Math.floor(Math.min(...known)), Math.ceil(Math.max(...known) + 1e-9)];
  const ticks = Array.from({ length: to - from + 1 }, (_, step) => 10 ** (from + step));
  return { at: (value) => low + ((Math.log10(value) - from) / (to - from || 1)) * (high - low), ticks };
}

const named = (frame: DataFrame, matcher: { options: string }, frames: DataFrame[]) =>
  frame.fields.find((field) => field.name === matcher.options || getFieldDisplayName(field, frame, frames) === matcher.options);

/** Both axes in powers of ten, as the boards' own scatters have them. */
export function Scatter(props: Props) {
  const theme = useTheme2();
  const frames = props.data.series;
  const chosen = props.options.series.map((series: any) => ({
    name: series.name.fixed as string,
    x: named(frames[0], series.x.matcher, frames)!,
    y: named(frames[0], series.y.matcher, frames)!,
  }));
  if (chosen.some((series: any) => !series.x || !series.y)) {
    throw new Error(`no such field: ${frames[0].fields.map((field) => field.name)}`);
  }
  const legend = 30;
  const [left, bottom] = [80, props.height - legend - 36];
  const xs = scale(chosen.flatMap((series: any) => series.x.values), left, props.width - 16);
  const ys = scale(chosen.flatMap((series: any) => series.y.values), bottom, 8);
  const color = (place: number) => theme.visualization.getColorByName(["green", "orange", "blue"][place]);
  return (
    <>
      <svg width={props.width} height={props.height - legend} style={{ fontSize: 12, fill: theme.colors.text.primary, display: "block" }}>
        {ys.ticks.map((tick) => (
          <g key={tick}>
            <line x1={left} x2={props.width - 16} y1={ys.at(tick)} y2={ys.at(tick)} stroke={theme.colors.border.weak} />
            <text x={left - 6} y={ys.at(tick) + 4} textAnchor="end">{text(chosen[0].y, tick)}</text>
          </g>
        ))}
        {xs.ticks.map((tick) => (
          <g key={tick}>
            <line x1={xs.at(tick)} x2={xs.at(tick)} y1={8} y2={bottom} stroke={theme.colors.border.weak} />
            <text x={xs.at(tick)} y={bottom + 16} textAnchor="middle">{text(chosen[0].x, tick)}</text>
          </g>
        ))}
        <text x={(left + props.width) / 2} y={bottom + 32} textAnchor="middle">{chosen[0].x.config.custom?.axisLabel || chosen[0].x.name}</text>
        {chosen.map((series: any, place: number) =>
          (series.x.values as number[]).map((x, row) =>
            x > 0 && series.y.values[row] > 0 ? <circle key={`${place}-${row}`} cx={xs.at(x)} cy={ys.at(series.y.values[row])} r={5} fill={color(place)} fillOpacity={0.8} /> : null,
          ),
        )}
      </svg>
      <VizLegend placement="bottom" displayMode={"list" as never} items={chosen.map((series: any, place: number) => ({ label: series.name, color: color(place), yAxis: 1 }))} />
    </>
  );
}
