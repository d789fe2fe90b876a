"""What is due when: one entry a name, found without a look at the others."""

from heapq import heappop, heappush


class Schedule:
    """The next moment at which each name has something to do. Of one moment, names come in the order of their rank."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._due: dict[str, float] = {}
        self._ranks: dict[str, int] = {}

    def put(self, name: str, due: float | None) -> None:
        """From now on ``name`` is due then (None: not at all), and at no other time."""
        if due == self._due.get(name):
            return
        if due is None:
            del self._due[name]
            return
        self._due[name] = due
        heappush(self._heap, (due, self._ranks.setdefault(name, len(self._ranks)), name))

    def first(self) -> float | None:
        """The earliest moment."""
        while self._heap:
            due, _, name = self._heap[0]
            if self._due.get(name) == due:
                return due
            heappop(self._heap)  # it was put off, or called off
        return None

    def take(self, now: float) -> list[str]:
        """All that is due by ``now``; they are no longer due."""
        names: dict[str, None] = {}
        while (due := self.first()) is not None and due <= now:
            name = heappop(self._heap)[2]
            names[name] = None
            del self._due[name]
        return sorted(names, key=self._ranks.__getitem__)
