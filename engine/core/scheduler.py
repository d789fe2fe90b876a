"""Who runs in the next step. Pure bookkeeping: no clock, no tensor, no thread.

One rule covers everything: each running sequence has tokens that are known (or promised by a step under way) and
not yet computed, and a step computes as many of them as one budget allows. Sequences that lack one token (they
decode) go first, so that a long prompt never delays them by more than one step; drafts of tokens to come ride on
top; prompts fill what is left of the budget, in chunks.

One order covers the rest: a sequence's rank, given when it arrives (engine/core/ranking.py). The first in rank is
admitted first; when the cache is full, the last in rank gives its blocks back and computes its tokens again later.

A step may be scheduled while the one before is under way (``settle`` comes later). What a sequence then has to
come is counted in ``flying`` and ``promised``, and whoever ends keeps its blocks until no step knows them any more.
"""

from bisect import insort
from collections.abc import Iterable

from engine.core.blocks import BlockPool
from engine.core.ranking import Ranking, rank
from engine.core.sequence import Output, Sequence, Span, Step
from engine.core.speculation import Speculation, agreed


class Scheduler:
    """Sequences that run and sequences that wait, both from the first in rank to the last."""

    def __init__(self, pool: BlockPool, *, max_running: int, step_tokens: int,
                 speculation: Speculation | None = None) -> None:  # fmt: skip
        self.pool = pool
        self.running: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.speculation = speculation or Speculation(0)
        self.preemptions = 0
        self.prefix_queries = 0  # tokens that were looked up
        self.prefix_hits = 0  # ... and found
        self.step_tokens = step_tokens  # the budget; smaller while memory is short
        self._max_running = max_running
        self._ranking = Ranking()
        self._under_way: list[Step] = []

    @property
    def busy(self) -> bool:
        """Whether there is anything to compute or to settle."""
        return bool(self.running or self.waiting or self._under_way)

    def add(self, sequence: Sequence) -> None:
        """Let a sequence wait for its turn. It must fit into the cache when alone."""
        self._ranking.arrived(sequence, self.waiting)
        insort(self.waiting, sequence, key=rank)

    def cancel(self, id: str) -> Sequence | None:  # noqa: A002 - a plain id
        """Forget a sequence and free its blocks; None if it is not here (it has ended)."""
        for queue in (self.running, self.waiting):
            for sequence in queue:
                if sequence.id == id:
                    queue.remove(sequence)
                    self._end(sequence)
                    return sequence
        return None

    def cancel_all(self) -> list[Sequence]:
        """Forget everything; returns what was forgotten."""
        gone = [*self.running, *self.waiting]
        self.running.clear()
        self.waiting.clear()
        for sequence in gone:
            self._end(sequence)
        return gone

    def _end(self, sequence: Sequence) -> None:
        sequence.ended = True
        if not sequence.flying:  # else a step under way still reads and writes its blocks
            self.pool.release(sequence)

    # ---- before a step ----

    def schedule(self) -> Step | None:
        """The next step; None when there is nothing to do before a step under way has been settled, or at all."""
        if self._under_way and not self._foreseeable():
            return None
        spans: dict[str, Span] = {}
        budget = self.step_tokens
        decodes = sum(one.pending == 1 for one in self.running)
        gone: set[str] = set()
        for sequence in sorted(self.running, key=lambda one: one.pending > 1):  # stable: by rank within each
            span = None if sequence.id in gone else self._span(sequence, budget, decodes)
            if span is None:
                continue
            while sequence.id not in gone and not self.pool.grow(sequence, span.start + span.count):
                if self._under_way:
                    return None  # nobody gives way whose tokens are still being computed
                victim = self._preempt_last()
                gone.add(victim.id)
                budget += spans.pop(victim.id).count if victim.id in spans else 0
            if sequence.id not in gone:
                spans[sequence.id] = span
                budget -= span.count
        if not gone:
            self._admit(spans, budget)
        return self._begin(spans.values()) if spans else None

    def _begin(self, spans: Iterable[Span]) -> Step:
        step = Step(tuple(sorted(spans, key=lambda span: (span.count > 1, span.start))))
        self._under_way.append(step)
        for span in step.spans:
            span.sequence.flying += span.count
            span.sequence.promised += bool(span.samples)
        return step

    def _foreseeable(self) -> bool:
        """Whether what the step under way will give matters to nobody but by its value."""
        drafted = any(span.draft for step in self._under_way for span in step.spans)
        stateful = any(one.stateful for one in self.running)
        return not (drafted or stateful or self.speculation.wanted(self.running))

    def _span(self, sequence: Sequence, budget: int, decodes: int) -> Span | None:
        """What the next step computes of ``sequence``, None if nothing."""
        count = min(sequence.pending, budget)
        if count <= 0 or (sequence.promised and sequence.left <= 0):
            return None
        start = sequence.computed + sequence.flying
        if count < sequence.pending:
            return Span(sequence, start, count)
        if sequence.promised:
            return Span(sequence, start, count, samples=1, ahead=True)
        draft = self.speculation.draft(sequence, decodes) if count == 1 else ()
        if draft and self.pool.needed(sequence, start + 1 + len(draft)) > self.pool.free:
            draft = ()  # a guess is not worth another's blocks
        return Span(sequence, start, count + len(draft), samples=1 + len(draft), draft=draft)

    def _preempt_last(self) -> Sequence:
        victim = self.running.pop()
        self.pool.release(victim)
        victim.preemptions += 1
        self.preemptions += 1
        insort(self.waiting, victim, key=rank)
        return victim

    def _admit(self, spans: dict[str, Span], budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._max_running:
            sequence = self.waiting[0]
            found = self.pool.adopt(sequence)
            if not self.pool.grow(sequence, len(sequence.tokens)):  # whole: a half-computed prompt is never evicted
                self.pool.release(sequence)
                return
            del self.waiting[0]
            insort(self.running, sequence, key=rank)
            self._ranking.admitted(sequence)
            if not sequence.preemptions:
                sequence.cached = min(found, sequence.prompt_len)
            self.prefix_queries += len(sequence.tokens)
            self.prefix_hits += found
            count = min(sequence.pending, budget)
            spans[sequence.id] = Span(sequence, found, count, samples=int(count == sequence.pending))
            budget -= count

    # ---- after it ----

    def settle(self, step: Step, sampled: list[int]) -> list[Output]:
        """Book what the oldest step under way computed; ``sampled`` has ``span.samples`` tokens a span, in order."""
        self._land(step)
        outputs: list[Output] = []
        tokens = iter(sampled)
        for span in step.spans:
            drawn = [next(tokens) for _ in range(span.samples)]
            if not span.sequence.ended:
                outputs += self._take(span, drawn)
        return outputs

    def withdraw(self, step: Step) -> None:
        """Book that a step was not computed: its tokens are pending again."""
        self._land(step)

    def _land(self, step: Step) -> None:
        self._under_way = [one for one in self._under_way if one is not step]
        for span in step.spans:
            sequence = span.sequence
            sequence.flying -= span.count
            sequence.promised -= bool(span.samples)
            if sequence.ended and not sequence.flying:
                self.pool.release(sequence)

    def _take(self, span: Span, drawn: list[int]) -> list[Output]:
        """The tokens that a span gave: those of its draft that are right, and one beyond."""
        sequence = span.sequence
        right = agreed(span.draft, drawn)
        if span.draft:
            self.speculation.learn(sequence, span.draft, right)
        sequence.computed += span.count - len(span.draft)
        outputs: list[Output] = []
        for place, token in enumerate(drawn[: right + 1]):
            sequence.computed += place > 0  # the token before was in the draft: its keys are those that stay
            finish = sequence.append(token)
            outputs.append(Output(sequence.id, token, finish))
            if finish is not None:
                break
        self.pool.publish(sequence)
        if outputs and outputs[-1].finish is not None:
            self.running.remove(sequence)
            self._end(sequence)
        return outputs
