"""How often the same place of a GPU has failed within a day: what one error means can depend on that.

Two errors on one SM from two programs point to the hardware, errors all over the GPU to a program; an NVLink parity
error matters from the third on one link on (NVIDIA Xid catalogue, 2025-10; NVSentinel looks at a day).
"""

import msgspec

WINDOW_S = 86_400.0
BURST_S = 1.0  # the lines of one exception
MOST_TIMES = 32
MOST_PLACES = 512


class Repeats(msgspec.Struct):
    """The times of the last errors, and the processes that met them (0: unknown), by place."""

    times: dict[str, list[tuple[float, int]]] = {}

    def count(self, place: str, now: float) -> int:
        """One more at this place; how many there were within a day, this one counted."""
        return len(self._add(place, now, 0))

    def programs(self, place: str, now: float, pid: int | None) -> int:
        """One more at this place, met by this process; how many processes (or bursts of unknown ones) met it."""
        before = self.times.get(place, [])
        if pid is None and before and abs(now - before[-1][0]) <= BURST_S:
            return self._distinct(before)
        return self._distinct(self._add(place, now, pid or 0))

    @staticmethod
    def _distinct(times: list[tuple[float, int]]) -> int:
        known = {pid for _, pid in times if pid}
        return len(known) + sum(1 for _, pid in times if not pid)

    def _add(self, place: str, now: float, pid: int) -> list[tuple[float, int]]:
        recent = [(at, who) for at, who in self.times.pop(place, []) if now - at <= WINDOW_S]
        kept = [*recent, (now, pid)][-MOST_TIMES:]
        self.times[place] = kept
        if len(self.times) > MOST_PLACES:
            del self.times[next(iter(self.times))]
        return kept
