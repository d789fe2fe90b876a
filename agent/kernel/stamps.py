"""When a line was written, in seconds since the epoch, as far as it tells.

Uptime stamps need the boot time. Stamps without a zone are of the zone that the caller names. A stamp without a year is
of the latest year that does not put it more than a day after ``now``: a log that is read over New Year stays in order.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from agent.kernel.parsed import Prefix
from vocab.errors import InputError

_DAY_S = 86400.0
_LEAP_YEARS_BACK = 8  # 29 February is at most eight years away

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_SHORT = re.compile(r"(\S+) +(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_CTIME = re.compile(r"\S+ (\S+) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})")
_YEARED = re.compile(r"(\S+) +(\d{1,2}) (\d{4}) (\d\d):(\d\d):(\d\d)")
_FULL = re.compile(r"\S+ (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?) (\S+)")

# Abbreviated months as loggers print them in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish.
_MONTHS = (
    "jan january ene gen sty janv",
    "feb fev febr févr fév lut",
    "mar mär märz mars mrt mrz",
    "apr abr avr avril kwi",
    "may mai maj mag mei",
    "jun juin giu juni cze",
    "jul juil lug juli lip",
    "aug ago août aou sie",
    "sep sept set wrz",
    "oct okt ott out paź",
    "nov lis",
    "dec dez déc dic dic gru",
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}


def zone(text: str | None) -> tzinfo:
    """The zone of a name like ``Europe/Berlin``, of ``UTC`` or of an offset like ``+02:00``; raises InputError."""
    if text is None or text.upper() in ("UTC", "Z"):
        return UTC
    if found := _OFFSET.fullmatch(text):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        if offset < timedelta(hours=24):
            return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"--tz: {text!r} is not a time zone: give a name like Europe/Berlin or +02:00") from error


class Stamps:
    """Reads the stamps of one scan: one zone, one ``now``, and the boot time if it is known."""

    def __init__(self, where: tzinfo, now: float, boot_time: float | None) -> None:
        self._where = where
        self._now = now
        self._boot_time = boot_time

    def at(self, prefix: Prefix) -> float | None:
        """Seconds since the epoch, None where the line has no absolute time or one that does not exist."""
        try:
            return self._wall(prefix)
        except (ValueError, OverflowError):
            return None

    def _wall(self, prefix: Prefix) -> float | None:
        if prefix.iso is not None:
            moment = datetime.fromisoformat(prefix.iso)
            return (moment if moment.tzinfo else moment.replace(tzinfo=self._where)).timestamp()
        if prefix.text is not None:
            return self._text(prefix.text)
        if prefix.uptime_s is not None and self._boot_time is not None:
            return self._boot_time + prefix.uptime_s
        return None

    def _text(self, text: str) -> float | None:
        if found := _CTIME.fullmatch(text):
            month = _month(found[1])
            return month and self._moment(int(found[6]), month, found[2], found[3], found[4], found[5])
        if found := _YEARED.fullmatch(text):
            month = _month(found[1])
            return month and self._moment(int(found[3]), month, found[2], found[4], found[5], found[6])
        if found := _FULL.fullmatch(text):
            moment = datetime.fromisoformat(f"{found[1]}T{found[2]}")
            return moment.replace(tzinfo=UTC if found[3] in ("UTC", "GMT") else self._where).timestamp()
        if not (found := _SHORT.fullmatch(text)) or (month := _month(found[1])) is None:
            return None
        day, hour, minute, second, fraction = found.groups()[1:]
        return self._latest(month, (day, hour, minute, second), float(f"0.{fraction or 0}"))

    def _latest(self, month: int, parts: tuple[str, ...], fraction: float) -> float | None:
        """The latest such moment that is not after now and a day."""
        year = datetime.fromtimestamp(self._now + _DAY_S, self._where).year
        for candidate in range(year, year - _LEAP_YEARS_BACK - 1, -1):
            try:
                moment = self._moment(candidate, month, *parts)
            except ValueError:
                continue  # 29 February of another year
            if moment <= self._now + _DAY_S:
                return moment + fraction
        return None

    def _moment(self, year: int, month: int, *parts: str) -> float:
        day, hour, minute, second = (int(part) for part in parts)
        return datetime(year, month, day, hour, minute, second, tzinfo=self._where).timestamp()


def _month(name: str) -> int | None:
    if name[-1] in "月월":
        return int(name[:-1])
    return _MONTH.get(name.lower().rstrip("."))
