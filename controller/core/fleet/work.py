"""The work: what has changed since the rules last came to rest, so that a turn costs what has changed and no more.

``touch``ing a subject puts it on the lists that rules read, and turns a counter of its node and its deployments.
An incident is *quiet* while the counters that it depends on stand as they stood when nothing was to be done for it.
"""

from collections import defaultdict
from collections.abc import Iterable

from vocab.lines import Subject

Mark = tuple[int, ...]


class Work:
    """Lists and counters; no decision. The fleet fills them, rules read them."""

    def __init__(self) -> None:
        self.words: dict[Subject, None] = {}  # whose word may have changed
        self.nodes: dict[str, None] = {}
        self.replicas: dict[str, None] = {}
        self.deployments: dict[str, None] = {}
        self.doubtful: dict[str, None] = {}  # replicas of which it must be asked again whether they stay
        self.going: set[str] = set()  # replicas that do not, as of when that was asked last
        self.rules: dict[str, None] = {}  # codes for which something was held, or would have been, or was lifted
        self.versions: dict[str, None] = {}  # nodes with other versions than before
        self.booted: dict[str, None] = {}  # nodes with another boot than before
        self.looks: dict[str, None] = {}  # nodes that look another way than when they were drawn last
        self.readings: dict[str, None] = {}  # nodes with newer readings than those
        self.untold: dict[str, None] = {}  # nodes that may have to be told something new
        self.all_untold = True
        self.unsure: dict[str, None] = {}  # GPUs that may have become free, or may not be any longer
        self.marks: dict[str, Mark] = {}  # by incident: at the beginning of this round
        self.quiet: dict[str, Mark] = {}  # by incident: where nothing was to be done
        self._open: dict[str, None] = {}  # incidents that may be restless: something that they rest on has turned
        self._resting: dict[str, dict[str, None]] = defaultdict(dict)  # by name: the others, which rest on it
        self._turns: dict[str, int] = defaultdict(int)
        self._all = 0
        self._kept: dict[str, dict[str, None]] = {"replicas": {}, "deployments": {}}

    def turn(self, name: str | None) -> None:
        """Something about this node or deployment (None: about everything) has changed."""
        if name is None:
            self._all += 1
            for resting in self._resting.values():
                self._open |= resting
            self._resting.clear()
            return
        self._turns[name] += 1
        resting = self._resting.pop(name, {})
        if resting:
            self._open |= resting

    def stir(self, incident: str) -> None:
        """The incident itself has changed."""
        self._open[incident] = None

    def stirred(self) -> list[str]:
        """The incidents that may be restless: no others are."""
        return list(self._open)

    def let_rest(self, incident: str, names: Iterable[str]) -> None:
        """Do not look at it again before one of these has turned."""
        self._open.pop(incident, None)
        for name in names:
            self._resting[name][incident] = None

    def mark(self, names: Iterable[str]) -> Mark:
        """How the counters of these nodes and deployments stand."""
        return (self._all, *(self._turns[name] for name in names))

    def keep_replica(self, name: str) -> None:
        """Look at it again next time, whatever happens until then."""
        self._kept["replicas"][name] = None

    def keep_deployment(self, name: str) -> None:
        """Look at it again next time, whatever happens until then."""
        self._kept["deployments"][name] = None

    def rest(self) -> None:
        """The rules have come to rest: what they have seen is off the lists."""
        self.replicas, self.deployments = self._kept["replicas"], self._kept["deployments"]
        self._kept = {"replicas": {}, "deployments": {}}
        self.nodes, self.booted, self.rules = {}, {}, {}
        self.versions = {}
