"""Messages that are mostly an outcome (Xid 45) are judged as one until some seconds have shown that they stand alone.

Channels are torn down in a burst when a process ends or after another fault. A single 45 with no fault, no ending
process and no other 45 near it is worth a look. No count of them is ever more than that.
"""

import msgspec

from agent.judge.links import place_of
from vocab.events import Event
from vocab.observations import AnyObservation, ProcessSeen, ReplicaSeen

OUTCOMES = frozenset({"xid:45"})
PATIENCE_S = 5.0  # causes come within that: see links
COMPANY_S = 5.0  # a process tears all its channels down at once
EXIT_S = 30.0  # processes are looked at every few seconds, and an engine takes its time to end
MOST = 256
ENDED = frozenset({"gone", "Z"})
WHY = "channel teardown after process exit"


class Alone(msgspec.Struct):
    """The outcomes that nothing has explained yet, by the key of their fold, and which processes ended lately."""

    due: dict[str, float] = {}
    last: dict[str, tuple[float, str]] = {}  # GPU or name of the process -> when the last outcome came, and its key
    ends: dict[str, float] = {}  # pid or GPU -> when a process ended there

    def take(self, key: str, event: Event, now: float, seen: float) -> list[str]:
        """An outcome without a cause was seen; the keys of those that are known not to stand alone."""
        company = []
        for place in _places(event):
            before = self.last.pop(place, None)
            self.last[place] = (seen, key)
            if before is not None and abs(seen - before[0]) <= COMPANY_S:
                company.append(before[1])
        _trim(self.last)
        if event.count > 1 or company or self.ended(event, seen):
            keys = list(dict.fromkeys([key, *company]))
            for known in keys:
                self.due.pop(known, None)
            return keys
        self.due[key] = now + PATIENCE_S
        return []

    def see(self, observation: AnyObservation, now: float) -> bool:
        """Note a process that ended; whether there was one."""
        names: list[str] = []
        match observation:
            case ProcessSeen(state=state) if state in ENDED:
                names = [_of_pid(observation.pid), *observation.used_bytes]
            case ReplicaSeen() if observation.exit is not None or observation.phase == "stopped":
                members = [member.gpu for member in observation.members]
                names = [*map(_of_pid, observation.pids), *observation.gpus, *members]
        for name in names:
            self.ends.pop(name, None)
            self.ends[name] = now
        _trim(self.ends)
        return bool(names)

    def ended(self, event: Event, seen: float) -> bool:
        """Whether the event's process, or one on its GPU, ended near that time."""
        names = (_of_pid(event.pid) if event.pid is not None else None, event.gpu)
        return any(abs(self.ends[name] - seen) <= EXIT_S for name in names if name in self.ends)

    def ripe(self, now: float) -> list[str]:
        """The keys whose time is over; they are forgotten."""
        keys = [key for key, due in self.due.items() if due <= now]
        for key in keys:
            del self.due[key]
        return keys

    def next_deadline(self) -> float | None:
        """When the first has stood alone for long enough."""
        return min(self.due.values(), default=None)


def _places(event: Event) -> list[str]:
    """Where company is looked for: on the same GPU, and among processes of one name, as an engine has one a GPU."""
    places = [place_of(event) or ""]
    return [*places, f"name:{event.process}"] if event.process else places


def _of_pid(pid: int) -> str:
    return f"pid:{pid}"


def _trim(shelf: dict[str, float] | dict[str, tuple[float, str]]) -> None:
    while len(shelf) > MOST:
        del shelf[next(iter(shelf))]
