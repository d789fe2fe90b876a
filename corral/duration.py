"""A span of time on the command line."""

import re
from typing import Any

import click

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_FORM = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


class Duration(click.ParamType[float]):
    """A time such as 90s, 30m, 12h or 365d, as seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        found = _FORM.fullmatch(str(value).strip())
        if found is None or float(found[1]) == 0:
            self.fail(f"{value!r} is no time; write for example 30m, 90s, 12h or 365d", param, ctx)
        return float(found[1]) * _UNITS[found[2]]
