"""One step on one device: tensors in, one token out for each row that samples."""

import time
from collections.abc import Iterator

import torch

from engine.core.attention import Backend
from engine.core.model import Forward
from engine.core.sampler import Row, Sampled, sample
from engine.core.sequence import Span, Step
from engine.core.threads import Threads


class Runner:
    """A model on its backend. ``launch`` does not wait for the device, ``run`` does."""

    def __init__(
        self, model: Forward, backend: Backend, device: torch.device | None = None, threads: Threads | None = None
    ) -> None:
        self._device = device or torch.device("cpu")
        self._threads = threads  # of a CPU, whose steps have ended when they are launched
        self._model = model
        self._backend = backend
        self._latest = torch.empty(0)  # what the latest step has sampled, on the device
        self._places: dict[str, int] = {}  # ... and where in it each sequence's next token stands

    def run(self, step: Step) -> list[int]:
        """Compute ``step``; the sampled tokens, in the order of the spans."""
        return self.launch(step).host()

    @torch.inference_mode()
    def launch(self, step: Step) -> Sampled:
        """Compute ``step``; its sampled tokens stay on the device, where the next step finds those it needs."""
        if self._threads is None:
            return self._launch(step)
        began, count = time.perf_counter(), self._threads.choose(step.tokens)
        torch.set_num_threads(count)
        sampled = self._launch(step)
        self._threads.took(step.tokens, count, time.perf_counter() - began)
        return sampled

    def _launch(self, step: Step) -> Sampled:
        rows = [Row(span.sequence, position) for span in step.spans for position in span.positions]
        hidden = self._hidden(step)
        sampled = sample(self._scores(hidden, step), rows)
        going_on = [(span.sequence, end - 1) for span, end in _ends(step) if not span.samples]
        if going_on:
            sequences, last = zip(*going_on, strict=True)
            sampled.watch(list(sequences), hidden[self._put(list(last))])
        self._latest = sampled.tokens
        self._places = {row.sequence.id: place for place, row in enumerate(rows)}
        return sampled

    @torch.inference_mode()
    def logits(self, step: Step) -> torch.Tensor:
        """Compute ``step``; the scores (rows, vocab) behind each row that samples."""
        return self._scores(self._hidden(step), step)

    def _scores(self, hidden: torch.Tensor, step: Step) -> torch.Tensor:
        wanted = [row for span, end in _ends(step) for row in range(end - span.samples, end)]
        if not wanted:
            return hidden[:0]
        return self._model.logits(hidden if len(wanted) == len(hidden) else hidden[self._put(wanted)])

    def _hidden(self, step: Step) -> torch.Tensor:
        """What the last layer gives for all tokens of ``step``, (T, hidden)."""
        tokens: list[int] = []
        positions: list[int] = []
        ahead: list[int] = []  # rows whose token the step before has sampled
        for span in step.spans:
            if span.ahead:
                ahead.append(len(tokens))
            tokens += span.tokens
            positions += range(span.start, span.start + span.count)
        ids = self._put(tokens)
        if ahead:
            places = [self._places[span.sequence.id] for span in step.spans if span.ahead]
            ids[self._put(ahead)] = self._latest[self._put(places)]
        self._backend.plan(step)
        return self._model.forward(ids, self._put(positions), self._backend)

    def _put(self, numbers: list[int]) -> torch.Tensor:
        if self._device.type == "cpu":
            return torch.tensor(numbers)
        return torch.tensor(numbers, pin_memory=True).to(self._device, non_blocking=True)


def _ends(step: Step) -> Iterator[tuple[Span, int]]:
    """Each span, and the row behind its last one."""
    end = 0
    for span in step.spans:
        end += span.count
        yield span, end
