"""The docket: what is open, by kind, so that a rule looks at its own and at no other. The ledger keeps it."""

from collections import defaultdict

from vocab.lines import ConditionLine, IncidentLine, Subject
from vocab.states import ClearsOn

BY_BOOT = frozenset({ClearsOn.RESET, ClearsOn.REBOOT})
Key = tuple[Subject, str, str | None]  # of an open condition: subject, code, device


class Docket:
    """Open incidents and conditions, each kind in the order in which they were opened."""

    def __init__(self) -> None:
        self._number = 0
        self._opened: dict[str, int] = {}  # incident -> a number that tells which was opened first
        self._code: dict[str, str] = {}  # incident -> under which code it is listed: its root may change
        self._of_code: dict[str, dict[str, None]] = defaultdict(dict)
        self._suspecting: dict[str, None] = {}
        self._conditions: dict[str, dict[Key, str]] = defaultdict(dict)
        self._of_replicas: dict[Key, None] = {}
        self._by_boot: dict[Key, str] = {}  # conditions that a boot ends

    def fold_incident(self, line: IncidentLine) -> None:
        """An incident was opened, has grown, or is closed."""
        listed = self._code.pop(line.id, None)
        if listed is not None:
            del self._of_code[listed][line.id]
        self._suspecting.pop(line.id, None)
        if line.state == "closed":
            self._opened.pop(line.id, None)
            return
        if line.id not in self._opened:
            self._number += 1
            self._opened[line.id] = self._number
        self._code[line.id] = line.code
        self._of_code[line.code][line.id] = None
        if line.suspects:
            self._suspecting[line.id] = None

    def opened(self, key: Key, condition: ConditionLine) -> None:
        """A condition stands, or has grown."""
        self._conditions[key[1]][key] = condition.id
        if condition.clears_on in BY_BOOT:
            self._by_boot[key] = condition.id
        if key[0].replica is not None:
            self._of_replicas[key] = None

    def ended(self, key: Key) -> None:
        """It stands no more."""
        self._conditions[key[1]].pop(key, None)
        self._of_replicas.pop(key, None)
        self._by_boot.pop(key, None)

    def incidents(self, code: str) -> list[str]:
        """The open incidents of a code."""
        return sorted(self._of_code.get(code, ()), key=self._opened.__getitem__)

    def suspecting(self) -> list[str]:
        """The open incidents that suspect a GPU."""
        return sorted(self._suspecting, key=self._opened.__getitem__)

    def conditions(self, code: str) -> list[tuple[Subject, str]]:
        """The subjects with an open condition of a code, and its id."""
        return [(subject, condition) for (subject, _, _), condition in self._conditions.get(code, {}).items()]

    def ended_by_boot(self) -> list[str]:
        """The open conditions that a boot ends."""
        return list(self._by_boot.values())

    def replicas(self) -> list[str]:
        """The replicas with an open condition, of each condition one."""
        return [subject.replica for subject, _, _ in self._of_replicas if subject.replica is not None]
