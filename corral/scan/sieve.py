"""The few lines of a block that can be of interest, without a look at each of the many that are not.

Almost every line of a log is somebody else's. Marks are sought in the whole block at once, which the standard library
does at memory speed; only the lines around them are cut out.
"""

from collections.abc import Iterator

from agent.kernel.parser import MARKS, of_interest
from corral.scan.files import MAX_LINE

_BYTES = ('"MESSAGE":[', '"MESSAGE": [', '"MESSAGE" : [')  # a journal's message that is not plain text
_SOUGHT = (*MARKS, *_BYTES)


class Sieve:
    """One block of lines. ``places`` are where lines that hold a mark begin, in order."""

    def __init__(self, block: str) -> None:
        self._block = block
        self._next = 0  # where the first line begins that was not given out
        self.lines = block.count("\n") + 1

    def interesting(self) -> Iterator[str]:
        """The lines that can be of interest, but for those that ``following`` has given."""
        for place in self._places():
            if place >= self._next:
                self._next = place
                line = self._cut()
                if of_interest(line) or line.startswith("{"):
                    yield line

    def following(self) -> str | None:
        """The line after the last one that was given out, None at the end of the block."""
        return self._cut() if self._next <= len(self._block) else None

    def first(self, most: int) -> list[str]:
        """So many lines of the block, from its beginning."""
        return [line[:MAX_LINE] for line in self._block.split("\n", most)[:most]]

    def last(self) -> str:
        """The last line of the block, or its beginning."""
        begin = self._block.rfind("\n", 0, len(self._block.rstrip("\n"))) + 1
        return self._block[begin : begin + MAX_LINE].rstrip("\n")

    def _cut(self) -> str:
        end = self._block.find("\n", self._next)
        end = len(self._block) if end < 0 else end
        line = self._block[self._next : min(end, self._next + MAX_LINE)]
        self._next = end + 1
        return line

    def _places(self) -> list[int]:
        block, places = self._block, set()
        for mark in _SOUGHT:
            at = block.find(mark)
            while at >= 0:
                places.add(block.rfind("\n", 0, at) + 1)
                end = block.find("\n", at)
                at = block.find(mark, end) if end >= 0 else -1
        return sorted(places)
