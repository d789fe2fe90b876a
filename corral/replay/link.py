"""The way from a recorded node to the controller: up, down, or lossy (what is sent arrives, the answer is lost)."""

from collections.abc import Iterator

from controller.core.stimuli import Arrived, NodeReported, Replicas, Sampled, Stimulus


class Link:
    """One uplink. What is not acknowledged is kept, as in an agent's spool, and sent (again) once it is up."""

    def __init__(self) -> None:
        self._state = "up"
        self._kept: list[Stimulus] = []

    @property
    def reaches(self) -> bool:
        """Whether what the node sends now arrives."""
        return self._state != "down"

    def passes(self, stimulus: Stimulus) -> bool:
        """Whether this arrives now; without an answer it is kept in any case."""
        if self._state != "up":
            self._kept.append(stimulus)
        return self.reaches

    def turn(self, state: str) -> Iterator[Stimulus]:
        """The link changes; what arrives because of that. Of readings and lists only the latest is worth sending."""
        self._state = state
        if state != "up":
            return
        kept, self._kept = self._kept, []
        yield from [stimulus for stimulus in kept if isinstance(stimulus, NodeReported)][-1:]
        yield from (stimulus for stimulus in kept if isinstance(stimulus, Arrived))
        yield from {each.gpus[0].gpu: each for each in kept if isinstance(each, Sampled)}.values()
        yield from [stimulus for stimulus in kept if isinstance(stimulus, Replicas)][-1:]
