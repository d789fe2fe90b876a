"""Kinds of panel that show more than curves: counts as bars, a heat map, values side by side, points in a plane."""

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, timeseries, xychart
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import xychart as points
from grafana_foundation_sdk.models.common import BarGaugeDisplayMode, VizOrientation
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue, Threshold, ThresholdsMode
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.panels import HALF, SOURCE, TALL, Query, legend, lines, target

CELLS = 120  # columns of a heat map


def bars(title: str, description: str, queries: tuple[Query, ...], *, width: int = HALF) -> timeseries.Panel:
    """How often something happened, each bar a minute or more: curves would hide a single one between two gaps."""
    return (
        lines(title, description, queries, "none", width=width, stacked=True)
        .draw_style(shapes.GraphDrawStyle.BARS)
        .fill_opacity(80)
        .decimals(0)
        .no_value("none")
        .interval("1m")
        .max_data_points(CELLS)
        .legend(legend(width, ["sum"]))
    )


def heat(title: str, description: str, query: Query, *, width: int = HALF, height: int = TALL) -> heatmap.Panel:
    """A row a series, a column a stretch of time, the darker the more."""
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit("none")
        .span(width)
        .height(height)
        .calculate(False)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .scale(HeatmapColorScale.EXPONENTIAL)
            .exponent(0.5)
            .steps(64)
        )
        .interval("1m")
        .max_data_points(CELLS)
        .no_value("none")
        .with_target(target(query, "A").range())
    )


def beside(
    title: str,
    description: str,
    query: Query,
    unit: str,
    *,
    steps: tuple[tuple[float | None, str], ...],
    width: int = HALF,
    height: int = TALL,
) -> bargauge.Panel:
    """The latest value of each series as a bar, one below the other."""
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .span(width)
        .height(height)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("none")
        .thresholds(
            dashboard.ThresholdsConfig()
            .mode(ThresholdsMode.ABSOLUTE)
            .steps([Threshold(value=value, color=color) for value, color in steps])
        )
        .with_target(target(query, "A").instant())
    )


def scatter(
    title: str,
    description: str,
    across: Query,
    up: tuple[Query, ...],
    unit: str,
    *,
    by: str,
    width: int = HALF,
    height: int = TALL,
) -> xychart.Panel:
    """A point for each value of the label ``by`` and each query of ``up``, over the value of ``across``; both axes
    in powers of ten. The legends of the queries are the names of axis and series."""
    asked = dict(zip("ABCDEFGH", (across, *up), strict=False))
    names = {f"Value #{ref}": query.legend for ref, query in asked.items()}
    panel = (
        xychart.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(height)
        .mapping(points.SeriesMapping.MANUAL)
        .series([_points(across.legend, query.legend) for query in up])
        .show(points.XYShowMode.POINTS)
        .scale_distribution(common.ScaleDistributionConfig().type(shapes.ScaleDistribution.LOG).log(10))
        .legend(common.VizLegendOptions().show_legend(True).placement(shapes.LegendPlacement.BOTTOM))
        .override_by_name(
            across.legend,
            [
                DynamicConfigValue(id_val="unit", value="none"),
                DynamicConfigValue(id_val="custom.axisLabel", value=across.legend),
            ],
        )
        .with_transformation(
            DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": [by, *names]}})
        )
        .with_transformation(DataTransformerConfig(id_val="joinByField", options={"byField": by, "mode": "inner"}))
        .with_transformation(DataTransformerConfig(id_val="organize", options={"renameByName": names}))
    )
    for ref, query in asked.items():
        panel = panel.with_target(target(query, ref).instant().format(PromQueryFormat.TABLE))
    return panel


def _points(across: str, up: str) -> xychart.XYSeriesConfig:
    def by_name(name: str) -> xychart.MatcherConfig:
        return xychart.MatcherConfig().id("byName").options(name)

    return (
        xychart.XYSeriesConfig()
        .name(xychart.XychartXYSeriesConfigName().fixed(up))
        .frame(xychart.XychartXYSeriesConfigFrame().matcher(xychart.MatcherConfig().id("byIndex").options(0)))
        .x(xychart.XychartXYSeriesConfigX().matcher(by_name(across)))
        .y(xychart.XychartXYSeriesConfigY().matcher(by_name(up)))
    )
