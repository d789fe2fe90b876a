"""Where the open folds stand, by what is asked of them, so that no question looks at all of them.

Derived from the folds and never stored. A log can hold faults on thousands of addresses, real or made up: what one
line costs must not grow with them.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from agent.judge.fold import SEPARATOR, Fold

Mark = tuple[float, int, str]  # a time, the fold's order, its key


class Shelf:
    """The keys of the open folds by subject and code, by code alone, by when they are due and when they are over."""

    def __init__(self, folds: dict[str, Fold]) -> None:
        self._folds = folds
        self._alike: dict[str, dict[str, None]] = {}
        self._of_code: dict[str, dict[str, None]] = {}
        self._due: list[Mark] = []
        self._ends: list[Mark] = []
        for key, fold in folds.items():
            self.put(key, fold)
            if fold.dirty:
                self.dirty(key, fold)

    def put(self, key: str, fold: Fold) -> None:
        """A fold was opened."""
        about, code = _about(key)
        self._alike.setdefault(about, {})[key] = None
        self._of_code.setdefault(code, {})[key] = None
        heappush(self._ends, (fold.ends, fold.order, key))

    def dirty(self, key: str, fold: Fold) -> None:
        """A fold has something to send."""
        heappush(self._due, (fold.due, fold.order, key))

    def alike(self, key: str) -> Iterable[str]:
        """The folds of the subject and the code of this key, in the order in which they were opened."""
        return self._alike.get(_about(key)[0], ())

    def of_codes(self, codes: Iterable[str]) -> Iterator[str]:
        """The folds of these codes on any subject."""
        return (key for code in codes for key in self._of_code.get(code, ()))

    def next_due(self) -> float | None:
        """When the first fold is due."""
        while self._due:
            due, order, key = self._due[0]
            fold = self._folds.get(key)
            if fold is not None and fold.order == order and fold.dirty and fold.due == due:
                return due
            heappop(self._due)  # it was sent since, or is no more
        return None

    def take_due(self, now: float) -> list[Fold]:
        """The folds that are due, in the order in which they were opened; they are no longer kept as due."""
        folds = []
        while (due := self.next_due()) is not None and due <= now:
            folds.append(self._folds[heappop(self._due)[2]])
        return sorted(folds, key=lambda fold: fold.order)

    def drop_over(self, now: float) -> None:
        """Forget the folds that nothing came to for the length of the window."""
        while self._ends and self._ends[0][0] < now:
            _, order, key = heappop(self._ends)
            fold = self._folds.get(key)
            if fold is None or fold.order != order:
                continue
            if fold.ends >= now or fold.dirty:
                heappush(self._ends, (max(fold.ends, now), order, key))
            else:
                self._drop(key)

    def _drop(self, key: str) -> None:
        del self._folds[key]
        about, code = _about(key)
        for shelf, name in ((self._alike, about), (self._of_code, code)):
            del shelf[name][key]
            if not shelf[name]:
                del shelf[name]


def _about(key: str) -> tuple[str, str]:
    """Subject and code together, and the code."""
    subject, code, _ = key.split(SEPARATOR, 2)
    return f"{subject}{SEPARATOR}{code}", code
