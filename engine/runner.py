"""One step on one device: tensors in, one token out for each span that samples."""

import torch

from engine.attention import Backend
from engine.model import Model
from engine.sampler import sample
from engine.sequence import Step


class Runner:
    """A model on its backend."""

    def __init__(self, model: Model, backend: Backend) -> None:
        self._model = model
        self._backend = backend

    @torch.inference_mode()
    def run(self, step: Step) -> list[int]:
        """Compute ``step``; the sampled tokens, in the order of the spans that sample."""
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
        hidden = self._model.forward(torch.tensor(tokens), torch.tensor(positions), self._backend)
        if not last:
            return []
        logits = self._model.logits(hidden[torch.tensor(last)])
        rules = [(span.sequence.sampling, len(span.sequence.tokens)) for span in step.spans if span.samples]
        return sample(logits, rules)
