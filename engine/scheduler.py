"""Who runs in the next step. Pure bookkeeping: no clock, no tensor, no thread.

One rule covers everything: each running sequence has tokens that are known and not yet computed, and a step
computes as many of them as one budget allows. Sequences that lack one token (they decode) go first, so that a
long prompt never delays them by more than one step; prompts fill what is left of the budget, in chunks. When
the cache is full, the sequence that came last gives its blocks back and computes its tokens again later.
"""

from collections import deque

from engine.blocks import BlockPool
from engine.sequence import Output, Sequence, Span, Step


class Scheduler:
    """Sequences that run, in order of admission, and sequences that wait, in order of arrival."""

    def __init__(self, pool: BlockPool, *, max_running: int, step_tokens: int) -> None:
        self.pool = pool
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.preemptions = 0
        self.prefix_queries = 0  # prompt tokens that were looked up
        self.prefix_hits = 0  # ... and found
        self.step_tokens = step_tokens  # the budget; smaller while memory is short
        self._max_running = max_running

    @property
    def busy(self) -> bool:
        """Whether there is anything to compute."""
        return bool(self.running or self.waiting)

    def add(self, sequence: Sequence) -> None:
        """Let a sequence wait for its turn. It must fit into the cache when alone."""
        self.waiting.append(sequence)

    def cancel(self, id: str) -> Sequence | None:  # noqa: A002 - a plain id
        """Forget a sequence and free its blocks; None if it is not here (it has ended)."""
        for queue in (self.running, self.waiting):
            for sequence in queue:
                if sequence.id == id:
                    queue.remove(sequence)
                    self.pool.release(sequence)
                    return sequence
        return None

    def cancel_all(self) -> list[Sequence]:
        """Forget everything; returns what was forgotten."""
        gone = [*self.running, *self.waiting]
        for sequence in gone:
            self.pool.release(sequence)
        self.running.clear()
        self.waiting.clear()
        return gone

    def schedule(self) -> Step | None:
        """The next step, or None when there is nothing to do."""
        counts: dict[str, int] = {}
        budget = self.step_tokens
        preempted = False
        for sequence in sorted(self.running, key=lambda one: one.pending > 1):  # stable: oldest first within each
            if sequence not in self.running:  # preempted for one before it
                continue
            count = min(sequence.pending, budget)
            if count == 0:
                continue
            while sequence in self.running and not self.pool.grow(sequence, sequence.computed + count):
                victim = self._preempt_newest()
                preempted = True
                budget += counts.pop(victim.id, 0)
            if sequence in self.running:
                counts[sequence.id] = count
                budget -= count
        if not preempted:
            self._admit(counts, budget)
        spans = [Span(one, one.computed, counts[one.id]) for one in self.running if one.id in counts]
        return Step(tuple(sorted(spans, key=lambda span: (span.count > 1, span.start)))) if spans else None

    def _preempt_newest(self) -> Sequence:
        victim = self.running.pop()
        self.pool.release(victim)
        victim.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(victim)
        return victim

    def _admit(self, counts: dict[str, int], budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._max_running:
            sequence = self.waiting[0]
            found = self.pool.adopt(sequence)
            if not self.pool.grow(sequence, len(sequence.tokens)):  # whole: a half-computed prompt is never evicted
                self.pool.release(sequence)
                return
            self.waiting.popleft()
            self.running.append(sequence)
            sequence.cached = found
            self.prefix_queries += len(sequence.tokens)
            self.prefix_hits += found
            count = min(sequence.pending, budget)
            counts[sequence.id] = count
            budget -= count

    def settle(self, step: Step, sampled: list[int]) -> list[Output]:
        """Book what a step computed; ``sampled`` has one token for each span that samples, in order."""
        outputs: list[Output] = []
        tokens = iter(sampled)
        for span in step.spans:
            sequence = span.sequence
            samples = span.samples
            sequence.computed += span.count
            self.pool.publish(sequence)
            if not samples:
                continue
            token = next(tokens)
            finish = sequence.append(token)
            outputs.append(Output(sequence.id, token, finish))
            if finish is not None:
                self.running.remove(sequence)
                self.pool.release(sequence)
        return outputs
