"""Durations of rules, divided: a run of fifteen minutes sees what hours see, with the same rules throughout."""

import re

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
LEAST_MS = 1000  # no window is shorter than a scrape of such a run

_DURATION = re.compile(r"(\d+)(ms|[smhdw])")
_RANGE = re.compile(r"(?<=\[)[\dsmhdw]+(?=[\]:])|(?<=:)[\dsmhdw]+(?=\])|(?<=offset )[\dsmhdw]+")
_SECONDS = re.compile(r"<([\dsmhdw]+)>")


def milliseconds(duration: str) -> int:
    """Of a duration as Prometheus writes it."""
    parts = _DURATION.findall(duration)
    if not parts or "".join(map("".join, parts)) != duration:
        raise ValueError(f"{duration!r} is no duration of Prometheus'")
    return sum(int(count) * UNITS_MS[unit] for count, unit in parts)


def divided(duration: str, by: int) -> str:
    """The duration divided; as it was written where nothing is divided."""
    if by == 1:
        return duration
    left = max(LEAST_MS, milliseconds(duration) // by)
    return f"{left // 1000}s" if left % 1000 == 0 else f"{left}ms"


def in_time(expr: str, by: int) -> str:
    """The expression with all its windows divided, and what is compared with seconds written as seconds."""
    ranged = _RANGE.sub(lambda found: divided(found[0], by), expr)
    return _SECONDS.sub(lambda found: f"{milliseconds(found[1]) / by / 1000:g}", ranged)
