"""Where keys and values live: fixed blocks of tokens, counted references, and blocks kept for equal prefixes.

Theory. The cache is cut into blocks of ``size`` tokens. A sequence holds a table of block numbers; full blocks
may be shared, the last, partly filled one never is. A full block that has been computed gets a *content number*:
a fresh integer for the pair (content number of the block before, its tokens). The pair itself is the key of the
dictionary, so two different prefixes can never be taken for one another, as hashes could. A block whose
references fall to zero keeps its content and goes to the end of the free list; it is lost only when its turn
comes to be used anew. Tables are freed from their end, so the tails of prefixes go before their heads.

What a sequence whose numbers are none (``Sequence.corrupt``) has computed is offered to nobody, and wiped when its
blocks are given back: a mask is a product with 0, and 0 times NaN is NaN.

Invariants (tests hold them): every block is either free or referenced; a block is referenced exactly as often as
it stands in tables; a block that is not full stands in one table only.
"""

from collections import OrderedDict
from collections.abc import Callable

from engine.core.sequence import Sequence

ROOT = 0  # the content number before the first block

Key = tuple[int, tuple[int, ...]]


class BlockPool:
    """All blocks of one cache. ``wipe`` fills blocks of the cache itself with zeros."""

    def __init__(self, count: int, size: int, wipe: Callable[[list[int]], None] = lambda _: None) -> None:
        self.count = count
        self.size = size
        self._wipe = wipe
        self._references = [0] * count
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(count))
        self._content: list[tuple[Key, int] | None] = [None] * count  # what a block holds: (key, content number)
        self._by_key: dict[Key, int] = {}
        self._next_number = ROOT + 1

    @property
    def free(self) -> int:
        """Blocks that no sequence holds."""
        return len(self._free)

    @property
    def used_ratio(self) -> float:
        """Share of the blocks that sequences hold, 0 to 1."""
        return 1.0 - self.free / self.count

    def needed(self, sequence: Sequence, tokens: int) -> int:
        """Blocks that a table for ``tokens`` tokens lacks."""
        return max(0, -(-tokens // self.size) - len(sequence.blocks))

    def adopt(self, sequence: Sequence) -> int:
        """Give a sequence without blocks the cached blocks of its longest known prefix; returns their tokens.

        At least one token is left to compute, since its logits are wanted.
        """
        assert not sequence.blocks, "a sequence adopts before it grows"
        number = ROOT
        for start in range(0, len(sequence.tokens) - self.size, self.size):
            key = (number, tuple(sequence.tokens[start : start + self.size]))
            block = self._by_key.get(key)
            if block is None:
                break
            number = self._take(block)
            sequence.blocks.append(block)
            sequence.chain.append(number)
        sequence.computed = len(sequence.blocks) * self.size
        return sequence.computed

    def _take(self, block: int) -> int:
        content = self._content[block]
        assert content is not None
        self._free.pop(block, None)
        self._references[block] += 1
        return content[1]

    def grow(self, sequence: Sequence, tokens: int) -> bool:
        """Lengthen the table to hold ``tokens`` tokens; False (and nothing changed) if the blocks do not suffice."""
        needed = self.needed(sequence, tokens)
        if needed > self.free:
            return False
        for _ in range(needed):
            block, _ = self._free.popitem(last=False)
            self._forget(block)
            self._references[block] = 1
            sequence.blocks.append(block)
        return True

    def _forget(self, block: int) -> None:
        content = self._content[block]
        if content is not None:
            del self._by_key[content[0]]
            self._content[block] = None

    def publish(self, sequence: Sequence) -> None:
        """Make the full, computed blocks of a sequence known to those who come with the same prefix."""
        while not sequence.corrupt and (len(sequence.chain) + 1) * self.size <= sequence.computed:
            index = len(sequence.chain)
            parent = sequence.chain[-1] if sequence.chain else ROOT
            key = (parent, tuple(sequence.tokens[index * self.size : (index + 1) * self.size]))
            known = self._by_key.get(key)
            if known is None:
                known = sequence.blocks[index]
                self._by_key[key] = known
                self._content[known] = (key, self._next_number)
                self._next_number += 1
            content = self._content[known]
            assert content is not None
            sequence.chain.append(content[1])

    def release(self, sequence: Sequence) -> None:
        """Take all blocks from a sequence; what it had computed must be computed, or found, again."""
        freed: list[int] = []
        for block in reversed(sequence.blocks):
            self._references[block] -= 1
            assert self._references[block] >= 0, f"block {block} was freed twice"
            if self._references[block] == 0:
                self._free[block] = None
                freed.append(block)
            if sequence.corrupt:
                self._forget(block)
        if sequence.corrupt and freed:
            self._wipe(freed)
        sequence.blocks.clear()
        sequence.chain.clear()
        sequence.computed = 0
