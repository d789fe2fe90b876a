"""How often the helper lets itself be used, whatever its caller believes: counted on disk, over restarts.

The numbers are far above what the controller's budget allows and far below what wears a node out.
"""

from pathlib import Path

import msgspec

from wire.disk import write_durably

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


class Limit(msgspec.Struct, frozen=True):
    """At most ``most`` in any ``within_s``."""

    most: int
    within_s: float


LIMITS: dict[str, Limit] = {
    "reset": Limit(8, HOUR_S),  # of one GPU: two attempts of four faults; one that needs more is broken
    "reboot": Limit(8, DAY_S),  # a node that needs more is for a person
    "stop_service": Limit(40, HOUR_S),  # ten resets with four services each
    "start_service": Limit(80, HOUR_S),  # bringing back is tried more often
    "collect": Limit(20, HOUR_S),
}


class Counts(msgspec.Struct):
    """When (seconds since the epoch) each verb was used on each subject."""

    used: dict[str, list[float]] = {}

    def refusal(self, verb: str, subject: str, now: float) -> str | None:
        """Why this verb may not be used on this subject now; None if it may."""
        limit = LIMITS.get(verb)
        if limit is None:
            return None
        recent = [at for at in self.used.get(f"{verb} {subject}", ()) if now - limit.within_s < at <= now]
        if len(recent) < limit.most:
            return None
        again = min(recent) + limit.within_s - now
        return f"{verb} of {subject or 'the node'} was done {len(recent)} times: not again for {again:.0f} s"

    def count(self, verb: str, subject: str, now: float) -> None:
        """It is about to be done."""
        limit = LIMITS.get(verb)
        if limit is None:
            return
        key = f"{verb} {subject}"
        self.used[key] = [at for at in self.used.get(key, ()) if now - limit.within_s < at <= now] + [now]


class Ledger:
    """The counts in their file. One that cannot be read counts as empty, one that cannot be written raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._counts = msgspec.json.decode(path.read_bytes(), type=Counts)
        except (OSError, msgspec.DecodeError):
            self._counts = Counts()

    def refusal(self, verb: str, subjects: tuple[str, ...], now: float) -> str | None:
        """The first refusal among these subjects."""
        found = (self._counts.refusal(verb, subject, now) for subject in subjects)
        return next((why for why in found if why is not None), None)

    def count(self, verb: str, subjects: tuple[str, ...], now: float) -> None:
        """On disk before the deed."""
        for subject in subjects:
            self._counts.count(verb, subject, now)
        if verb in LIMITS:
            write_durably(self._path, msgspec.json.encode(self._counts))
