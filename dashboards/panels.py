"""The few kinds of panel that the boards are made of, each with what all of that kind have in common.

A panel cannot be made without a description: it says what good looks like, for someone who sees the board
for the first time at night.
"""

from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

WIDE, HALF, THIRD, QUARTER = 24, 12, 8, 6  # of a board's 24 columns
TALL, SHORT = 8, 4  # rows of 30 pixels

NONE = "or 0 * max(corral_store_up)"  # 0 where nothing is counted, and nothing where the controller is not scraped

GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"
ORANGE, PURPLE, GRAY = "orange", "purple", "#8e8e8e"
STATES = {  # of GPUs and nodes: green serves, yellow serves with a doubt, blue is Corral at work, red is lost to users
    "healthy": GREEN, "live": GREEN, "degraded": YELLOW, "suspect": YELLOW, "probation": "light-green",
    "fenced": "light-purple", "cordoned": PURPLE, "draining": "light-blue", "repairing": BLUE,
    "validating": "dark-blue", "failed": RED, "lost": "dark-red", "quarantined": ORANGE, "unknown": GRAY,
    "removed": "#c7c7c7",
}  # fmt: skip
DOINGS = {  # what GPUs do with their time
    "memory-bound": GREEN, "compute-bound": "dark-green", "idle": GRAY, "launch-bound": YELLOW, "starved": ORANGE,
    "throttled": RED, "hung": "dark-red",
}  # fmt: skip


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
    stacked: bool = False,
    colors: dict[str, str] | None = None,
) -> timeseries.Panel:
    """Curves over time from zero up; ``most`` fixes the top of the axis, ``stacked`` adds them up.

    ``colors``: of the series with these names.
    """
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
        .show_points(shapes.VisibilityMode.AUTO)  # a point alone, between two gaps, is no line
        .span_nulls(False)  # a gap is a gap: no reading is not a good reading
        .legend(legend(width, ["lastNotNull", "max"]))
        .tooltip(common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI).sort(shapes.SortOrder.DESCENDING))
    )
    if most is not None:
        panel = panel.max(most)
    elif unit == "none":
        panel = panel.axis_soft_max(1)  # all at 0 is not an axis up to 100
    if stacked:
        panel = panel.fill_opacity(60).line_width(0)
        panel = panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL).group("A"))
    for ref, query in zip("ABCDEFGH", queries, strict=False):
        panel = panel.with_target(target(query, ref).range())
        if query.dashed:
            panel = panel.override_by_query(ref, LIMIT)
    for name, color in (colors or {}).items():
        fixed = {"mode": FieldColorModeId.FIXED.value, "fixedColor": color}
        panel = panel.override_by_name(name, [DynamicConfigValue(id_val="color", value=fixed)])
    return panel


def legend(width: int, figures: list[str]) -> common.VizLegendOptions:
    """Beside a wide panel a table, below a narrow one a list: below a wide one a table shows two of eight lines."""
    made = common.VizLegendOptions().show_legend(True).calcs(figures)
    if width < HALF:
        return made.display_mode(shapes.LegendDisplayMode.LIST).placement(shapes.LegendPlacement.BOTTOM).calcs([])
    return made.display_mode(shapes.LegendDisplayMode.TABLE).placement(shapes.LegendPlacement.RIGHT)


def number(
    title: str,
    description: str,
    query: Query,
    unit: str,
    *,
    steps: tuple[tuple[float | None, str], ...],
    words: dict[str, tuple[str, str]] | None = None,
    width: int = QUARTER,
    absent: str = "no reading",
    named: bool = False,
) -> stat.Panel:
    """The latest value, large, and what its series is called if it is ``named``. ``steps`` colour it; ``words`` says a
    value as (text, colour), ``absent`` that there is no series."""
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
        .text_mode(shapes.BigValueTextMode.VALUE_AND_NAME if named else shapes.BigValueTextMode.AUTO)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value(absent)
        .thresholds(
            dashboard.ThresholdsConfig()
            .mode(ThresholdsMode.ABSOLUTE)
            .steps([Threshold(value=value, color=color) for value, color in steps])
        )
        .with_target(target(query, "A").instant())
    )
    if words:
        panel = panel.mappings(_mapping(words))
    return panel


def rows(
    title: str,
    description: str,
    query: Query,
    columns: dict[str, str],
    *,
    width: int = WIDE,
    height: int = TALL,
    unit: str = "none",
    value: str | None = None,
    link: tuple[str, str] | None = None,
) -> table.Panel:
    """One row a series: its labels under the names in ``columns``, then its ``value`` if that has a name.

    ``link``: the words and the address of the board that a row leads to; ``${__data.fields.label}`` stands for a label.
    """
    names = {**columns, **({"Value": value} if value else {})}
    hidden = {"Time": True, **({} if value else {"Value": True})}
    order = {name: place for place, name in enumerate(names)}
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(height)
        .filterable(True)
        .no_value("none")
        .with_target(target(query, "A").instant().format(PromQueryFormat.TABLE))
        .with_transformation(_transformation("filterFieldsByName", include={"names": [*names]}))
        .with_transformation(_transformation("organize", excludeByName=hidden, indexByName=order, renameByName=names))
    )
    if link is not None:
        text, url = link
        leads = dashboard.DashboardLink(text).type(DashboardLinkType.LINK).url(f"{url}&${{__url_time_range}}")
        panel = panel.data_links([leads])
    return panel


def states(
    title: str,
    description: str,
    query: Query,
    colors: dict[str, str],
    *,
    width: int = WIDE,
    height: int = TALL,
) -> statetimeline.Panel:
    """A strip a series over time, where it is 1; ``colors``: of the series that a regular expression names."""
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit("none")
        .span(width)
        .height(height)
        .merge_values(True)
        .show_value(shapes.VisibilityMode.NEVER)
        .row_height(0.8)
        .mappings(_mapping({"1": ("yes", BLUE)}))
        .with_target(target(query, "A").range())
    )
    for named, color in colors.items():
        colored = DynamicConfigValue(id_val="mappings", value=_mapping({"1": ("yes", color)}))
        panel = panel.override_by_regexp(f"/^({named})/", [colored])
    return panel


def _transformation(kind: str, **options: Any) -> DataTransformerConfig:
    return DataTransformerConfig(id_val=kind, options=options)


def _mapping(words: dict[str, tuple[str, str]]) -> list[ValueMapping]:
    options = {value: ValueMappingResult(text=text, color=color) for value, (text, color) in words.items()}
    return [ValueMap(options=options)]


def target(query: Query, ref: str) -> prometheus.Dataquery:
    """The query as Grafana's data source has it."""
    return prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(ref).datasource(SOURCE)
