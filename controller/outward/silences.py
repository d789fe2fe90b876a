"""Silences in an Alertmanager for nodes under maintenance: made when one begins, moved with its end, ended with it.

Nothing is kept here: each look compares what is maintained with Corral's own silences there, so it is right again after
any restart, and a silence that a person has ended is not made anew before the maintenance changes.
"""

import asyncio
import logging
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from controller.deciding.conductor import Conductor
from controller.notify.config import AlertmanagerConfig
from controller.notify.silence import maintained
from vocab.errors import CorralError
from vocab.lines import HoldLine
from wire.client import Client
from wire.server import read_token

log = logging.getLogger(__name__)

LOOK_S = 5.0
BY = "corral"
MARK = "corral maintenance "  # a silence's comment begins with it, and the hold's id


class _Status(msgspec.Struct):
    state: str = ""


class _Matcher(msgspec.Struct):
    name: str
    value: str


class Silence(msgspec.Struct):
    """One of Alertmanager's, as far as it is looked at."""

    id: str
    comment: str = ""
    createdBy: str = ""  # noqa: N815 - Alertmanager's name
    endsAt: str = ""  # noqa: N815 - Alertmanager's name
    matchers: list[_Matcher] = []
    status: _Status = msgspec.field(default_factory=_Status)


class Silences:
    """A loop of the controller that decides."""

    def __init__(self, config: AlertmanagerConfig, conductor: Conductor, *, look_s: float = LOOK_S) -> None:
        self._config = config
        self._conductor = conductor
        self._look_s = look_s
        self._said = ""

    async def run(self) -> None:
        """Look and act until cancelled. What it cannot reach is logged once and tried again."""
        token = read_token(Path(self._config.token_file) if self._config.token_file else None)
        async with Client(self._config.url, token=token) as client:
            while True:
                await asyncio.sleep(self._look_s)
                view = self._conductor.look() if self._conductor.decides else None
                if view is None:
                    continue
                try:
                    await self.agree(client, maintained(view))
                    self._said = ""
                except CorralError as error:
                    if str(error) != self._said:
                        log.warning("silences of maintenances: %s", error)
                    self._said = str(error)

    async def agree(self, client: Client, wanted: dict[str, HoldLine]) -> None:
        """Make, move and end silences until those of ours are as the maintenances are. Raises Unreachable, Refused."""
        ours: dict[tuple[str, str], list[Silence]] = {}
        for each in await client.call("GET", "/api/v2/silences", list[Silence]):
            if each.createdBy == BY and each.comment.startswith(MARK):
                ours.setdefault((each.comment.split(":")[0], _label(each)), []).append(each)
        for node, hold in wanted.items():
            for label in self._config.labels:
                known = ours.get((f"{MARK}{hold.id}", label), [])
                standing = next(filter(_stands, known), None)
                if standing is None and any(each.comment == _comment(hold) for each in known):
                    continue  # a person has ended it
                if standing is not None:
                    known.remove(standing)
                if standing is None or _seconds(standing.endsAt) != _whole(hold.until):
                    body = _body(node, hold, label) | ({"id": standing.id} if standing is not None else {})
                    await client.call("POST", "/api/v2/silences", dict[str, Any], body)
        for left in filter(_stands, chain.from_iterable(ours.values())):
            await client.fetch("DELETE", f"/api/v2/silence/{left.id}")


def _stands(silence: Silence) -> bool:
    """Whether it counts: Alertmanager lists for days what has ended, also a silence of which the time was moved."""
    return silence.status.state != "expired"


def _comment(hold: HoldLine) -> str:
    return f"{MARK}{hold.id}: {hold.reason}"


def _body(node: str, hold: HoldLine, label: str) -> dict[str, Any]:
    assert hold.until is not None, "a maintenance has an end"
    return {
        "matchers": [{"name": label, "value": node, "isRegex": False, "isEqual": True}],
        "startsAt": datetime.fromtimestamp(hold.at, UTC).isoformat(),  # of one that is past it takes its own now
        "endsAt": datetime.fromtimestamp(_whole(hold.until) or 0, UTC).isoformat(),
        "createdBy": BY,
        "comment": _comment(hold),
    }


def _label(silence: Silence) -> str:
    return silence.matchers[0].name if silence.matchers else ""


def _whole(until: float | None) -> int | None:
    return None if until is None else int(until)


def _seconds(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp).timestamp())
