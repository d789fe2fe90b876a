"""A moment on the command line: a time of day, a date and time, or a time with its zone."""

import re
from datetime import datetime, timedelta
from typing import Any

import click

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")


class Moment(click.ParamType[float]):
    """``17:30`` (the next one here), ``2026-12-01T17:30`` (here) or ``2026-12-01T17:30Z``, as seconds since the epoch.

    ``now``: for a time of day; None is the machine's.
    """

    name = "moment"

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        text, now = str(value).strip(), self._now or datetime.now().astimezone()
        try:
            if found := _CLOCK.fullmatch(text):
                at = now.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
                return (at if at > now else at + timedelta(days=1)).timestamp()
            return datetime.fromisoformat(text).astimezone().timestamp()
        except ValueError:
            self.fail(f"{value!r} is no moment; write for example 17:30, 2026-12-01T17:30 or 2026-12-01T17:30Z",
                      param, ctx)  # fmt: skip
