"""What faults cost, counted from the lines as they are stored: how many, how long, in which phase, at which try.

What began before this process did, or while another controller decided, is left out of the durations: a beginning that
is not known makes none.
"""

from collections.abc import Iterable

from prometheus_client import Counter, Histogram

from controller.core.fleet.kinds import USED_UP
from vocab.events import Severity
from vocab.lines import ActionLine, AnyLine, IncidentLine, StateLine
from vocab.states import REPAIRS, TERMINAL_ACTIONS, Health, Phase

IN_SERVICE = frozenset({Health.HEALTHY.value, Health.DEGRADED.value})
PHASES = (*(phase.value for phase in Phase if phase is not Phase.IN_SERVICE), "lost", "failed", "unknown", "cordoned")
TRIES = ("1", "2", "3 or more")


class FaultCounts:
    """Counts into the four collectors that it is given."""

    def __init__(self, opened: Counter, lasted: Histogram, stayed: Histogram, repairs: Counter) -> None:
        self._opened, self._lasted, self._stayed, self._repairs = opened, lasted, stayed, repairs
        self._since: dict[str, float] = {}  # open incidents
        self._in: dict[str, tuple[str, float]] = {}  # the state that each GPU was last seen to come into, and when
        self._begin()

    def _begin(self) -> None:
        """All series there are, at nothing: the first of a kind is an increase only where there was a 0 before."""
        for severity in Severity:
            self._opened.labels(severity.value)
            self._lasted.labels(severity.value)
        for state in PHASES:
            self._stayed.labels(state)
        for of in REPAIRS:
            for attempt in TRIES:
                for ended in USED_UP:
                    self._repairs.labels(of.value, attempt, ended.value)

    def take(self, lines: Iterable[AnyLine]) -> None:
        """Count what these lines began and ended."""
        for line in lines:
            match line:
                case IncidentLine():
                    self._incident(line)
                case StateLine():
                    self._state(line)
                case ActionLine() if line.of in REPAIRS and line.state in TERMINAL_ACTIONS:
                    attempt = TRIES[min(line.attempt, len(TRIES)) - 1]
                    self._repairs.labels(line.of.value, attempt, line.state.value).inc()

    def _incident(self, line: IncidentLine) -> None:
        if line.state == "open":
            self._opened.labels(line.severity.value).inc()
            self._since[line.id] = line.at
        elif line.state == "closed" and (since := self._since.pop(line.id, None)) is not None:
            self._lasted.labels(line.severity.value).observe(line.at - since)

    def _state(self, line: StateLine) -> None:
        gpu = line.subject.gpu
        if gpu is None:
            return
        state, since = self._in.get(gpu, (None, 0.0))
        if state is not None and state == line.from_ and state not in IN_SERVICE:
            self._stayed.labels(state).observe(line.at - since)
        self._in[gpu] = line.to, line.at
