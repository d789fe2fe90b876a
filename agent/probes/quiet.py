"""Signals of the log that nothing ever takes back: they are over when nothing more was said for a while."""

import msgspec

from agent.probes.probe import Clear, Finding
from vocab.events import Severity

QUIET_S: dict[str, float] = {
    "aer": 3600.0,  # a link that is going bad reports again within the hour
    "driver_library_mismatch": 3600.0,  # each program that starts with the wrong library is told so again
    "fabric_unhealthy": 900.0,  # the fabric manager repeats itself every second or minute while it is unhappy
}


class Said(msgspec.Struct, frozen=True):
    """What was said last of one subject: when (by the wall clock), and when it is over."""

    code: str
    gpu: str | None
    at: float
    due: float


class Quiet(msgspec.Struct):
    """What stands until the log is quiet about it, by code and GPU."""

    said: dict[str, Said] = {}

    def heard(self, found: Finding, now: float, at: float | None) -> None:
        """The log said something, at this time."""
        lasts = QUIET_S.get(found.code)
        if lasts is None or found.injected or at is None or found.severity is Severity.INFO:
            return
        self.said[f"{found.code} {found.gpu or ''}"] = Said(found.code, found.gpu, at, now + lasts)

    def over(self, now: float) -> list[Clear]:
        """What has become quiet."""
        due = {key: said for key, said in self.said.items() if said.due <= now}
        for key in due:
            del self.said[key]
        return [Clear(code=s.code, at=s.at + QUIET_S[s.code], gpu=s.gpu) for s in due.values()]

    def next_deadline(self) -> float | None:
        """When the first is over."""
        return min((said.due for said in self.said.values()), default=None)
