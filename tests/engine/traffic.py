"""A device made of a dictionary, and traffic for it: what the scheduler's books are held against."""

from collections import Counter, deque
from collections.abc import Callable

from engine.core.blocks import BlockPool
from engine.core.scheduler import Scheduler
from engine.core.sequence import Output, Sampling, Sequence, Step
from engine.core.speculation import Speculation

SIZE = 4  # tokens of a block
STOP = 2  # the token that ends an answer


def next_token(prefix: tuple[int, ...]) -> int:
    """A model so simple that it can be asked at any place: of the last tokens and, now and then, of all."""
    if len(prefix) % 7 == 0:
        return sum(place * token for place, token in enumerate(prefix, 1)) % 3
    return (prefix[-1] + (prefix[-2] if len(prefix) > 1 else 0)) % 2


def answer(prompt: list[int], sampling: Sampling) -> list[int]:
    """What a request must get, whatever happens around it."""
    tokens = tuple(prompt)
    while len(tokens) < len(prompt) + sampling.max_tokens:
        tokens += (next_token(tokens),)
        if tokens[-1] in sampling.stop_ids:
            break
    return list(tokens[len(prompt) :])


class Device:
    """Computes steps as late as it may. Each place of its cache remembers the whole prefix that it stands for."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], tuple[int, ...]] = {}
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}  # prefixes, one object each: compared by identity
        self._latest: dict[str, int] = {}

    def launch(self, step: Step) -> Callable[[], list[int]]:
        """Take a step; calling the answer computes it, after all that were launched before."""
        inputs = [(list(span.sequence.blocks), span.tokens) for span in step.spans]
        return lambda: self._compute(step, inputs)

    def _compute(self, step: Step, inputs: list[tuple[list[int], list[int]]]) -> list[int]:
        for span, (table, tokens) in zip(step.spans, inputs, strict=True):
            blocks = -(-(span.start + span.count) // SIZE)
            assert span.sequence.blocks[:blocks] == table[:blocks], "a table changed under a step under way"
            known = [self._latest[span.sequence.id]] if span.ahead else tokens
            for place, token in enumerate(known, span.start):
                prefix = (*self._at(table, place - 1), token)
                self._places[table[place // SIZE], place % SIZE] = self._known.setdefault(prefix, prefix)
        sampled = []
        for span, (table, _) in zip(step.spans, inputs, strict=True):  # only now: neighbours may not overwrite
            whole = self._at(table, span.start + span.count - 1)
            for place in range(len(whole)):
                assert self._at(table, place) is self._known[whole[: place + 1]], "a place holds another's keys"
            drawn = [next_token(whole[:position]) for position in span.positions]
            if drawn:
                self._latest[span.sequence.id] = drawn[-1]
            sampled += drawn
        return sampled

    def _at(self, table: list[int], place: int) -> tuple[int, ...]:
        return self._places[table[place // SIZE], place % SIZE] if place >= 0 else ()


class Traffic:
    """A scheduler on a device, with up to ``ahead`` steps scheduled before the oldest is settled."""

    def __init__(self, *, blocks: int, running: int, budget: int, drafts: int = 0, ahead: int = 0,
                 kind: type[Scheduler] = Scheduler) -> None:  # fmt: skip
        self.pool = BlockPool(blocks, SIZE)
        speculation = Speculation(drafts, rows=running * 3 // 2 + 1)
        self.scheduler = kind(self.pool, max_running=running, step_tokens=budget, speculation=speculation)
        self.budget = budget
        self.answers: dict[str, list[int]] = {}
        self.wanted: dict[str, list[int]] = {}
        self.steps_ahead = 0  # steps that were scheduled while another was under way
        self._ahead = ahead
        self._device = Device()
        self._flights: deque[tuple[Step, Callable[[], list[int]]]] = deque()

    def ask(self, prompt: list[int], most: int, client: str = "", priority: int = 0) -> Sequence:
        """A request arrives."""
        rule = Sampling(max_tokens=most, stop_ids=frozenset({STOP}))
        one = Sequence(str(len(self.answers)), prompt, rule, 0.0, client=client, priority=priority)
        self.wanted[one.id] = answer(prompt, rule)
        self.answers[one.id] = []
        self.scheduler.add(one)
        return one

    def cancel(self, name: str) -> None:
        """A client goes away, if it is still there."""
        if self.scheduler.cancel(name) is not None:
            del self.wanted[name]

    def turn(self) -> None:
        """Schedule one step, settle another."""
        step = self.scheduler.schedule()
        if step is not None:
            assert step.tokens <= self.budget
            self.steps_ahead += bool(self._flights)
            self._flights.append((step, self._device.launch(step)))
        if self._flights and (step is None or len(self._flights) > self._ahead):
            oldest, compute = self._flights.popleft()
            self._book(self.scheduler.settle(oldest, compute()))

    def _book(self, outputs: list[Output]) -> None:
        for output in outputs:
            assert output.token is not None
            self.answers[output.id].append(output.token)

    def check(self) -> None:
        """The invariants of engine/core/blocks.py, while no ended sequence is still under way."""
        running, waiting = self.scheduler.running, self.scheduler.waiting
        tables = Counter(block for one in running for block in one.blocks)
        assert not [one for one in waiting if one.blocks], "who waits holds nothing"
        if not self._flights:
            assert self.pool.free + len(tables) == self.pool.count, "a block is lost or counted twice"
        for one in running:
            for place, block in enumerate(one.blocks):
                assert tables[block] == 1 or (place + 1) * SIZE <= one.computed, "a block that is not full is shared"

    def finish(self) -> None:
        """Go on until all is done; then every answer is right and every block is back."""
        for _ in range(100_000):
            if not self.scheduler.busy:
                break
            self.turn()
        assert not self.scheduler.busy, "it does not come to an end"
        assert {name: self.answers[name] for name in self.wanted} == self.wanted
        assert self.pool.free == self.pool.count
