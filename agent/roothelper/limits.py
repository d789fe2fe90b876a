"""How often the helper lets itself be used, whatever its caller believes: counted on disk, over restarts.

The numbers are far above what the controller's budget allows and far below what wears a node out.
"""

import logging
import threading
from pathlib import Path

import msgspec

from wire.disk import write_durably

log = logging.getLogger(__name__)

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
    "stop_unit": Limit(30, HOUR_S),  # of one of the site's units: three drains of ten faults
    "restart_unit": Limit(12, HOUR_S),  # three within ten minutes is what the controller allows itself
    "start_unit": Limit(60, HOUR_S),
    "start_replica": Limit(30, HOUR_S),  # of one replica: a budget of four in ten minutes, and an order or two
    "start_replicas": Limit(300, HOUR_S),  # of the node, whatever names its replicas are given
}
KEPT = 1000  # subjects; past this, those that count no more are forgotten
ALWAYS = frozenset({"start_service", "start_unit"})  # what a repair has stopped comes back


class Counts(msgspec.Struct):
    """When (seconds since the epoch) each verb was used on each subject."""

    used: dict[str, list[float]] = {}

    def settle(self, now: float) -> bool:
        """A stamp that lies ahead is of a clock that was set back since: it counts from now on; whether there was one.

        To forget it would allow everything once more.
        """
        ahead = [key for key, stamps in self.used.items() if any(at > now for at in stamps)]
        for key in ahead:
            self.used[key] = [min(at, now) for at in self.used[key]]
        return bool(ahead)

    def refusal(self, verb: str, subject: str, now: float) -> str | None:
        """Why this verb may not be used on this subject now; None if it may."""
        limit = LIMITS[verb]
        recent = [at for at in self.used.get(f"{verb} {subject}", ()) if now - limit.within_s < at]
        if len(recent) < limit.most:
            return None
        again = min(recent) + limit.within_s - now
        return f"{verb} of {subject or 'the node'} was done {len(recent)} times: not again for {again:.0f} s"

    def count(self, verb: str, subject: str, now: float) -> None:
        """It is about to be done."""
        key = f"{verb} {subject}"
        self._forget(now)
        self.used[key] = [*(at for at in self.used.get(key, ()) if now - LIMITS[verb].within_s < at), now]

    def _forget(self, now: float) -> None:
        """Drop what counts no more, once it is much: replicas come and go, and each has a name of its own."""
        if len(self.used) < KEPT:
            return
        longest_s = max(limit.within_s for limit in LIMITS.values())
        for key in [key for key, stamps in self.used.items() if all(at <= now - longest_s for at in stamps)]:
            del self.used[key]


class Ledger:
    """The counts in their file, for callers of several threads. One that cannot be written raises OSError.

    A file that is there and cannot be read allows nothing but ``ALWAYS``: how often each verb was used is not guessed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._counts: Counts | None = None
        try:
            self._counts = msgspec.json.decode(path.read_bytes(), type=Counts)
        except FileNotFoundError:
            self._counts = Counts()
        except (OSError, msgspec.DecodeError) as error:
            log.error("the ledger cannot be read", extra={"path": str(path), "error": str(error)})

    def charge(self, verb: str, subjects: tuple[str, ...], now: float) -> str | None:
        """Count the verb, on disk before the deed, and give None; or give the first refusal and count nothing."""
        with self._lock:
            if self._counts is None:
                why = f"{self._path} cannot be read, so how often {verb} was done is not known: look, then remove it"
                return None if verb in ALWAYS else why
            moved = self._counts.settle(now)
            found = (self._counts.refusal(verb, subject, now) for subject in subjects)
            refusal = next((why for why in found if why is not None), None)
            if refusal is None:
                for subject in subjects:
                    self._counts.count(verb, subject, now)
            if refusal is None or moved:
                write_durably(self._path, msgspec.json.encode(self._counts))
            return refusal
