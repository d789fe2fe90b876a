"""One step on one device: tensors in, one token out for each span that samples."""

import torch

from engine.attention import Backend
from engine.model import Model
from engine.sampler import Row, sample
from engine.sequence import Step


class Runner:
    """A model on its backend."""

    def __init__(self, model: Model, backend: Backend, device: torch.device | None = None) -> None:
        self._device = device or torch.device("cpu")
        self._model = model
        self._backend = backend

    @torch.inference_mode()
    def run(self, step: Step) -> list[int]:
        """Compute ``step``; the sampled tokens, in the order of the spans that sample."""
        logits = self.logits(step)
        rows = [Row(span.sequence, len(span.sequence.tokens)) for span in step.spans if span.samples]
        return sample(logits, rows).host() if rows else []

    @torch.inference_mode()
    def logits(self, step: Step) -> torch.Tensor:
        """Compute ``step``; the scores (rows, vocab) behind each span that samples."""
        tokens: list[int] = []
        positions: list[int] = []
        last: list[int] = []  # rows whose logits are wanted
        for span in step.spans:
            end = span.start + span.count
            tokens += span.sequence.tokens[span.start : end]
            positions += range(span.start, end)
            if span.samples:
                last.append(len(tokens) - 1)
        self._backend.plan(step)
        hidden = self._model.forward(self._put(tokens), self._put(positions), self._backend)
        return self._model.logits(hidden[self._put(last)]) if last else hidden[:0]

    def _put(self, numbers: list[int]) -> torch.Tensor:
        return torch.tensor(numbers, device=self._device)
