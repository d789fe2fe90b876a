"""Small charts of one GPU, drawn as SVG without a script: a line for each figure, with its limits and its gaps.

A chart is 300 units wide and 64 high; what was not read for longer than ``GAP_S`` is a gap in the line, not a slope.
"""

from collections.abc import Callable, Sequence

import msgspec

from vocab.readings import Readings

WIDTH, HEIGHT = 300.0, 64.0
GAP_S = 60.0  # longer than an idle GPU is silent (32 s), shorter than what goes unnoticed
MOST_POINTS = 300  # one for each unit of width

Read = Callable[[Readings], float | None]
Point = tuple[float, Readings]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One curve: ``path`` is its SVG; ``now`` its last value, ``low`` and ``high`` its range; None: never read."""

    name: str
    path: str
    now: float | None
    low: float | None
    high: float | None


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Curves over one scale from 0 (or ``least``) to ``most``, in ``unit``; ``limit`` is drawn where it lies."""

    title: str
    unit: str
    digits: int
    most: float
    least: float
    lines: tuple[Line, ...]
    limit: float | None = None
    limit_y: float | None = None

    @property
    def told(self) -> str:
        """The chart in words, for those who do not see it."""
        each = [f"{line.name} {_range(line, self)}" for line in self.lines]
        limit = f"; limit {self.limit:.{self.digits}f} {self.unit}" if self.limit is not None else ""
        return f"{self.title}: {'; '.join(each)}{limit}"


class _Sheet(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    unit: str
    curves: tuple[tuple[str, Read], ...]
    scale: float = 1.0  # from base units to ``unit``
    digits: int = 0
    least: float = 0.0
    most: float | None = None  # None: what was read, and its limit
    limit: Read | None = None


SHEETS = (
    _Sheet(
        title="Utilization beside what it does",
        unit="%",
        scale=100.0,
        most=100.0,
        curves=(
            ("util", lambda r: r.utilization_ratio),
            ("SM active", lambda r: r.sm_active_ratio),
            ("DRAM active", lambda r: r.dram_active_ratio),
        ),
    ),
    _Sheet(title="Power", unit="W", curves=(("power", lambda r: r.power_w),), limit=lambda r: r.power_limit_w),
    _Sheet(
        title="Temperature",
        unit="°C",
        least=20.0,
        curves=(("GPU", lambda r: r.temperature_c), ("memory", lambda r: r.memory_temperature_c)),
        limit=lambda r: r.slowdown_c,
    ),
    _Sheet(
        title="SM clock",
        unit="MHz",
        scale=1e-6,
        curves=(("clock", lambda r: r.sm_clock_hz),),
        limit=lambda r: r.sm_clock_max_hz,
    ),
    _Sheet(
        title="Memory in use",
        unit="GiB",
        scale=2.0**-30,
        digits=1,
        curves=(("used", lambda r: r.memory_used_bytes),),
        limit=lambda r: r.memory_total_bytes,
    ),
)


def charts(points: Sequence[Point], since: float, until: float) -> list[Chart]:
    """The charts of what was read from ``since`` to ``until`` (seconds since the epoch); none of what never was."""
    inside = _thinned([point for point in points if since <= point[0] <= until])
    drawn = [_chart(sheet, inside, since, until) for sheet in SHEETS]
    return [chart for chart in drawn if any(line.now is not None for line in chart.lines)]


def _thinned(points: list[Point]) -> list[Point]:
    """At most so many points that each has its place; the last one stays."""
    step = -(-len(points) // MOST_POINTS)
    return points if step <= 1 else [*points[:-1:step], points[-1]]


def _chart(sheet: _Sheet, points: Sequence[Point], since: float, until: float) -> Chart:
    read = {name: _values(points, take, sheet.scale) for name, take in sheet.curves}
    limit = next((value for _, value in reversed(_values(points, sheet.limit, sheet.scale))), None)
    seen = [value for values in read.values() for _, value in values]
    most = sheet.most or max([*seen, limit or 0.0, sheet.least + 1.0]) * 1.05
    lines = tuple(_line(name, read[name], sheet, most, since, until) for name, _ in sheet.curves if read[name])
    return Chart(
        title=sheet.title, unit=sheet.unit, digits=sheet.digits, most=most, least=sheet.least, lines=lines,
        limit=limit, limit_y=None if limit is None else _y(limit, sheet.least, most),
    )  # fmt: skip


def _values(points: Sequence[Point], take: Read | None, scale: float) -> list[tuple[float, float]]:
    if take is None:
        return []
    return [(at, value * scale) for at, readings in points if (value := take(readings)) is not None]


def _line(
    name: str, values: Sequence[tuple[float, float]], sheet: _Sheet, most: float, since: float, until: float
) -> Line:
    parts, last = [], float("-inf")
    for at, value in values:
        x = (at - since) / max(until - since, 1.0) * WIDTH
        parts.append(f"{'M' if at - last > GAP_S else 'L'}{x:.1f} {_y(value, sheet.least, most):.1f}")
        last = at
    only = [value for _, value in values]
    return Line(name=name, path="".join(parts), now=only[-1], low=min(only), high=max(only))


def _y(value: float, least: float, most: float) -> float:
    share = (value - least) / (most - least)
    return round(HEIGHT - 1.0 - min(1.0, max(0.0, share)) * (HEIGHT - 2.0), 1)


def _range(line: Line, chart: Chart) -> str:
    if line.now is None or line.low is None or line.high is None:
        return "not read"
    digits = chart.digits
    return f"{line.now:.{digits}f} {chart.unit} last, {line.low:.{digits}f} to {line.high:.{digits}f} {chart.unit}"
