"""Graphs of decode steps: one launch replays what would be hundreds.

A graph is captured for each of a few numbers of rows, the largest first, all in one memory pool; a step of decodes
is padded to the next of them. Steps with a prompt in them run as they come.
"""

from collections.abc import Callable
from typing import Protocol

import torch

from engine.core.attention import Backend
from engine.core.model import Forward
from engine.cuda.attention import PagedBackend


class Graph(Protocol):
    """Something recorded that can be run again on the same memory."""

    def replay(self) -> None:
        """Run it."""
        ...


class Eager:
    """Runs the function again: what a graph must be equal to, on any device."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.replay = run


class Capture:
    """Records on the GPU; all recordings share one pool of memory."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], None]) -> Graph:
        """Warm up on a side stream, as capturing asks for, then record."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            run()
        return graph


def sizes(most: int) -> list[int]:
    """The numbers of rows that get a graph: 1, 2, 4, 8, then every eighth up to 64, every sixteenth beyond."""
    few = [rows for rows in (1, 2, 4) if rows < most]
    return [*few, *range(8, min(most, 64), 8), *range(64, most, 16), most]


class GraphedModel:
    """A model whose decode steps are replayed. Stands where a ``Model`` stands."""

    def __init__(self, model: Forward, backend: PagedBackend, most_rows: int, hidden: torch.Tensor,
                 record: Callable[[Callable[[], None]], Graph]) -> None:  # fmt: skip
        """``hidden``: an empty tensor of the model's width, dtype and device."""
        self._model = model
        self._backend = backend
        self._record = record
        device = hidden.device
        self._tokens = torch.zeros(most_rows, dtype=torch.int64, device=device)
        self._positions = torch.zeros(most_rows, dtype=torch.int64, device=device)
        self._hidden = torch.zeros(most_rows, hidden.shape[-1], dtype=hidden.dtype, device=device)
        self._graphs: dict[int, Graph] = {}
        self._sizes = sizes(most_rows)

    @torch.inference_mode()
    def capture(self, progress: Callable[[int, int], None] = lambda done, of: None) -> None:
        """Record all sizes, the largest first, so that the smaller ones fit into its memory."""
        for done, rows in enumerate(reversed(self._sizes), 1):
            self._backend.pad(rows, planned=False)
            self._graphs[rows] = self._record(self._run(rows))
            progress(done, len(self._sizes))

    def _run(self, rows: int) -> Callable[[], None]:
        def run() -> None:
            hidden = self._model.forward(self._tokens[:rows], self._positions[:rows], self._backend)
            self._hidden[:rows].copy_(hidden)

        return run

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, backend: Backend) -> torch.Tensor:
        """See Model. The answer of a replayed step stands until the next one is replayed."""
        rows = self._next(len(tokens))
        if rows is None or not self._backend.decodes_only:
            return self._model.forward(tokens, positions, backend)
        count = len(tokens)
        self._backend.pad(rows)
        self._tokens[:count].copy_(tokens)
        self._positions[:count].copy_(positions)
        self._graphs[rows].replay()
        return self._hidden[:count]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """See Model."""
        return self._model.logits(hidden)

    def _next(self, count: int) -> int | None:
        return next((rows for rows in self._sizes if rows >= count and rows in self._graphs), None)
