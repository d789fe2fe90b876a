"""What repairs that were ordered take along: GPUs that are well, and take no work until these have ended."""

from collections import defaultdict

from controller.core.fleet.ledger import Ledger
from vocab.lines import ActionLine, Subject
from vocab.states import REPAIRS


class Along:
    """The repairs under way, by what they disrupt."""

    def __init__(self) -> None:
        self._of: dict[Subject, dict[str, None]] = defaultdict(dict)
        self._disrupts: dict[str, tuple[Subject, ...]] = {}

    def fold(self, ledger: Ledger, line: ActionLine) -> None:
        """An action has changed; the ledger has taken it in already."""
        if line.of not in REPAIRS:
            return
        for subject in self._disrupts.pop(line.id, ()):
            del self._of[subject][line.id]
            if not self._of[subject]:
                del self._of[subject]
        if line.id in ledger.ordered_at and line.id in ledger.live_actions[line.of]:
            self._disrupts[line.id] = tuple(dict.fromkeys(line.disrupts))
            for subject in self._disrupts[line.id]:
                self._of[subject][line.id] = None

    def takes(self, gpu: str) -> bool:
        """Whether one of them takes this GPU."""
        return Subject(gpu=gpu) in self._of
