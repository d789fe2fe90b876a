"""A scene as one frame of a terminal, as wide and as high as it is. Pure."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from corral.top.scene import Row, Scene, worst_first
from vocab.activity import Doing
from vocab.events import Event

COLOURS = {
    Doing.COMPUTE_BOUND: "green",
    Doing.MEMORY_BOUND: "cyan",
    Doing.LAUNCH_BOUND: "yellow",
    Doing.STARVED: "yellow",
    Doing.IDLE: "bright_black",
    Doing.THROTTLED: "magenta",
    Doing.HUNG: "red",
}
STATES = {"healthy": "green", "serving": "green", "degraded": "yellow", "unknown": "bright_black", "draining": "yellow"}
EVENTS, REPLICAS = 5, 6  # lines of each that are kept free where the terminal is low
LEAST_ROWS = 4


def frame(scene: Scene, width: int, height: int) -> RenderableType:
    """The frame. GPUs that do not fit are counted; those that deserve a look come first."""
    events = scene.events[-EVENTS:]
    replicas = scene.replicas[:REPLICAS]
    room = max(LEAST_ROWS, height - 4 - len(scene.words) - len(events) - len(replicas) - 2)
    rows = list(scene.rows) if len(scene.rows) <= room else worst_first(scene.rows)[: room - 1]
    parts: list[RenderableType] = [Text(_cut(f"corral top  {scene.source}  {len(scene.rows)} GPUs", width), "bold")]
    parts += [Text(_cut(words, width), "red") for words in scene.words]
    parts.append(_table(rows, width))
    if len(rows) < len(scene.rows):
        parts.append(Text(f"… and {len(scene.rows) - len(rows)} more GPUs", "bright_black"))
    parts += [Text(_cut(words, width)) for words in replicas]
    if len(scene.replicas) > len(replicas):
        parts.append(Text(f"… and {len(scene.replicas) - len(replicas)} more replicas", "bright_black"))
    parts += [_event(event, width) for event in events]
    return Group(*parts)


def _table(rows: list[Row], width: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, width=min(width, 120))
    table.add_column("GPU", no_wrap=True, max_width=16, overflow="ellipsis")
    table.add_column("state", no_wrap=True, max_width=11)
    table.add_column("what it does", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("util", "SM", "mem", "°C", "W"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("replica", no_wrap=True, max_width=14, overflow="ellipsis")
    for row in rows:
        readings, doing = row.readings, row.doing
        colour = COLOURS[doing.doing] if doing is not None else "bright_black"
        table.add_row(
            escape(f"{row.node}/{row.index}"),
            Text(row.state, STATES.get(row.state, "red")),
            Text(str(doing) if doing is not None else "not known", colour),
            _share(readings.utilization_ratio),
            _share(readings.sm_active_ratio),
            _share(readings.dram_active_ratio),
            _whole(readings.temperature_c),
            _whole(readings.power_w),
            escape(row.replica),
        )
    return table


def _event(event: Event, width: int) -> Text:
    at = (event.at or "")[11:19]
    grave = "red" if event.severity.value in {"critical", "error"} else "yellow" if event.severity != "info" else ""
    return Text(_cut(f"{at} {event.code} {(event.gpu or event.node)[:12]} {event.text}", width), grave)


def _cut(text: str, width: int) -> str:
    """One line of text that may hold anything."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"
