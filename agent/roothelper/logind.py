"""Who is logged in and what blocks a shutdown, as systemd-logind tells over the bus."""

from pathlib import Path

import msgspec

from agent.roothelper.programs import run

LOOK_S = 5.0
LOGIND = "org.freedesktop.login1"
PLACE = "/org/freedesktop/login1"
MANAGER = "org.freedesktop.login1.Manager"
PEOPLE = ("user", "user-early", "user-light", "user-incomplete", "user-early-light")  # classes that are a person's
BLOCKING = ("block", "block-weak")


class _Answer(msgspec.Struct):
    data: list[list[list[object]]]


class _Word(msgspec.Struct):
    data: str


def users(busctl: Path) -> tuple[str, ...] | None:
    """``NAME (session N)`` of each person; None if logind cannot be asked."""
    rows = _rows(_call(busctl, "ListSessions"))
    if rows is None:
        return None
    found = []
    for row in rows:
        kind = _word(_property(busctl, str(row[4]), "Class")) if len(row) > 4 else None
        if kind is None or kind in PEOPLE:  # a session that ended between the two questions counts: ask again
            found.append(f"{row[2] if len(row) > 2 else 'somebody'} is logged in (session {row[0]})")
    return tuple(found)


def inhibitors(busctl: Path) -> tuple[str, ...] | None:
    """What forbids a shutdown now; None if logind cannot be asked."""
    rows = _rows(_call(busctl, "ListInhibitors"))
    return None if rows is None else blocking(rows)


def blocking(rows: list[list[object]]) -> tuple[str, ...]:
    """Of rows (what, who, why, mode, uid, pid) those that forbid a shutdown; one that delays it does not."""
    return tuple(
        f"{row[1]} forbids a shutdown: {row[2]}"
        for row in rows
        if len(row) >= 4 and "shutdown" in str(row[0]).split(":") and row[3] in BLOCKING
    )


def _call(busctl: Path, method: str) -> bytes | None:
    return _ask(busctl, "call", LOGIND, PLACE, MANAGER, method)


def _property(busctl: Path, session: str, name: str) -> bytes | None:
    return _ask(busctl, "get-property", LOGIND, session, "org.freedesktop.login1.Session", name)


def _ask(busctl: Path, *words: str) -> bytes | None:
    try:
        ran = run(busctl, ("--system", "--json=short", *words), LOOK_S)
    except OSError:
        return None
    return ran.output.encode() if ran.code == 0 else None


def _rows(raw: bytes | None) -> list[list[object]] | None:
    """The one array that the call returned."""
    try:
        data = msgspec.json.decode(raw or b"", type=_Answer).data
    except msgspec.DecodeError:
        return None
    return data[0] if data else None


def _word(raw: bytes | None) -> str | None:
    try:
        return msgspec.json.decode(raw or b"", type=_Word).data
    except msgspec.DecodeError:
        return None
