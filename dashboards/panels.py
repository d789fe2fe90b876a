"""The few kinds of panel that the boards are made of, each with what all of that kind have in common.

A panel cannot be made without a description: it says what good looks like, for someone who sees the board
for the first time at night.
"""

from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

WIDE, HALF, THIRD, QUARTER = 24, 12, 8, 6  # of a board's 24 columns
TALL, SHORT = 8, 4  # rows of 30 pixels

GREEN, YELLOW, RED = "green", "yellow", "red"


LIMIT = [  # a limit: thin, dashed, red
    DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [10, 10]}),
    DynamicConfigValue(id_val="custom.lineWidth", value=1),
    DynamicConfigValue(id_val="color", value={"mode": FieldColorModeId.FIXED.value, "fixedColor": RED}),
]


@dataclass(frozen=True)
class Query:
    """An expression and how its series are called; ``dashed`` draws it as the limit that it is."""

    expression: str
    legend: str
    dashed: bool = False


def lines(
    title: str,
    description: str,
    queries: tuple[Query, ...],
    unit: str,
    *,
    width: int = HALF,
    height: int = TALL,
    most: float | None = None,
) -> timeseries.Panel:
    """Curves over time from zero up; ``most`` fixes the top of the axis."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .span(width)
        .height(height)
        .line_width(2)
        .fill_opacity(0)
        .show_points(shapes.VisibilityMode.NEVER)
        .span_nulls(False)  # a gap is a gap: no reading is not a good reading
        .legend(
            common.VizLegendOptions()
            .display_mode(shapes.LegendDisplayMode.TABLE)
            .placement(shapes.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "mean", "max"])
        )
        .tooltip(common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI).sort(shapes.SortOrder.DESCENDING))
    )
    if most is not None:
        panel = panel.max(most)
    for ref, query in zip("ABCDEFGH", queries, strict=False):
        panel = panel.with_target(_target(query, ref).range())
        if query.dashed:
            panel = panel.override_by_query(ref, LIMIT)
    return panel


def number(
    title: str,
    description: str,
    query: Query,
    unit: str,
    *,
    steps: tuple[tuple[float | None, str], ...],
    words: dict[str, tuple[str, str]] | None = None,
    width: int = QUARTER,
) -> stat.Panel:
    """The latest value, large. ``steps`` colour it; ``words`` says a value as (text, colour)."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(SHORT)
        .color_mode(shapes.BigValueColorMode.BACKGROUND)
        .graph_mode(shapes.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("no reading")
        .thresholds(
            dashboard.ThresholdsConfig()
            .mode(ThresholdsMode.ABSOLUTE)
            .steps([Threshold(value=value, color=color) for value, color in steps])
        )
        .with_target(_target(query, "A").instant())
    )
    if words:
        options = {value: ValueMappingResult(text=text, color=color) for value, (text, color) in words.items()}
        mapping: list[ValueMapping] = [ValueMap(options=options)]
        panel = panel.mappings(mapping)
    return panel


def _target(query: Query, ref: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(ref).datasource(SOURCE)
