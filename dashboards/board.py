"""What all boards share: variables, annotations, time range, numbering, and their form as JSON.

Files are the truth: ``uid`` is stable, ``id`` is null, edits in Grafana are off.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from grafana_foundation_sdk.builders import (
    bargauge,
    dashboard,
    heatmap,
    stat,
    statetimeline,
    table,
    timeseries,
    xychart,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableRefresh,
    VariableSort,
)

from dashboards.panels import SOURCE

Panels = tuple[
    bargauge.Panel | heatmap.Panel | stat.Panel | statetimeline.Panel | table.Panel | timeseries.Panel | xychart.Panel,
    ...,
]

_INTERVALS_OWN = frozenset({"auto", "auto_count", "auto_min"})  # the SDK gives them to every kind of variable


def new_board(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """An empty board: last hour, refreshed every 15 s as Prometheus scrapes, one crosshair over all panels."""
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["corral"])
        .readonly()
        .time("now-1h", "now")
        .refresh("15s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Corral")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["corral"])
            .as_dropdown(True)
            .keep_time(True)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").type("prometheus").label("Data source"))
    )


def label_variable(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """One value chosen from a label of a metric; it is asked anew when the time range changes."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
        .multi(False)
        .include_all(False)
    )


def annotation(name: str, expression: str, text: str, color: str) -> Any:
    """A mark on every panel for as long as ``expression`` gives a series; ``text`` may use ``{{label}}``."""
    return {
        "name": name,
        "datasource": {"type": SOURCE.type_val, "uid": SOURCE.uid},
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": expression,
        "step": "30s",
        "titleFormat": name,
        "textFormat": text,
        "useValueForTime": False,
    }


def assemble(made: dashboard.Dashboard, parts: Sequence[tuple[str, Panels]], annotations: Sequence[Any]) -> bytes:
    """The board's JSON: a titled row for each part."""
    for title, panels in parts:
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return encode(made, annotations)


def encode(builder: dashboard.Dashboard, annotations: Sequence[Any] = ()) -> bytes:
    """The board as the JSON that ships: the same bytes for the same board."""
    board = msgspec.json.decode(JSONEncoder(sort_keys=True).encode(builder.build()))
    board["id"] = None
    board["annotations"] = {"list": list(annotations)}
    for variable in board["templating"]["list"]:
        for name in _INTERVALS_OWN & set(variable):
            del variable[name]
    for number, panel in enumerate(board["panels"], start=1):
        panel["id"] = number
    return msgspec.json.format(msgspec.json.encode(board, order="sorted"), indent=2) + b"\n"


_OPEN = "sum by (severity) (corral_incidents_open)"
INCIDENT = annotation(
    "Incident opened",
    f"{_OPEN} > (sum by (severity) (corral_incidents_open offset 1m) or 0 * {_OPEN})",
    "severity {{severity}}; anywhere in the fleet: `corral status` says where",
    "red",
)
