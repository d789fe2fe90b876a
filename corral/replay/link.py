"""The way from a recorded node to the controller: up, down, or lossy (what is sent arrives, the answer is lost)."""

from collections.abc import Iterator

from controller.core.fleet.stimuli import Arrived, NodeReported, Replicas, Sampled, Stimulus


class Link:
    """One uplink. What is not acknowledged is kept, as in an agent's spool, and sent (again) once it is up."""

    def __init__(self) -> None:
        self._state = "up"
        self._facts: NodeReported | None = None
        self._items: list[Arrived] = []
        self._samples: dict[str, Sampled] = {}
        self._list: Replicas | None = None

    @property
    def reaches(self) -> bool:
        """Whether what the node sends now arrives."""
        return self._state != "down"

    def passes(self, stimulus: Stimulus) -> bool:
        """Whether this arrives now; without an answer it is kept in any case. Of readings and lists, the latest."""
        if self._state != "up":
            self._keep(stimulus)
        return self.reaches

    def _keep(self, stimulus: Stimulus) -> None:
        if isinstance(stimulus, Arrived):
            self._items.append(stimulus)
        elif isinstance(stimulus, Sampled):
            self._samples[stimulus.gpus[0].gpu] = stimulus
        elif isinstance(stimulus, NodeReported):
            self._facts = stimulus
        elif isinstance(stimulus, Replicas):
            self._list = stimulus

    def turn(self, state: str) -> Iterator[Stimulus]:
        """The link changes; what arrives because of that, in the order of a batch."""
        self._state = state
        if state != "up":
            return
        facts, self._facts = self._facts, None
        items, self._items = self._items, []
        samples, self._samples = self._samples, {}
        listed, self._list = self._list, None
        yield from [facts] if facts is not None else []
        yield from items
        yield from samples.values()
        yield from [listed] if listed is not None else []
