"""systemd in memory, for tests of the replicas' duty: what was started, signalled and forgotten."""

import msgspec

from agent.roothelper.requests import AnyReply, Done, Failed, ReplicaRun
from agent.roothelper.unit import Unit


class FakeUnits:
    def __init__(self) -> None:
        self.runs: dict[str, ReplicaRun] = {}
        self.started: list[Unit] = []
        self.did: list[str] = []
        self.breaks: str | None = None
        self.next_pid = 1000

    def start(self, unit: Unit) -> AnyReply:
        if self.breaks is not None:
            return Failed(why=self.breaks)
        assert unit.name not in self.runs, "systemd refuses a name that it knows"
        self.next_pid += 1
        self.started.append(unit)
        self.runs[unit.name] = ReplicaRun(known=True, runs=True, pid=self.next_pid, result="success")
        return Done()

    def end(self, name: str, **how: object) -> None:
        """Its process ends."""
        self.runs[name] = msgspec.structs.replace(self.runs[name], runs=False, **how)

    def read(self, name: str) -> ReplicaRun:
        return self.runs.get(name, ReplicaRun(known=False))

    def log(self, name: str) -> str:
        return f"last words of {name}\n"

    def signal(self, name: str, signal: str, whom: str) -> AnyReply:
        self.did.append(f"{signal} {whom} {name}")
        return Done()

    def clear(self, name: str) -> AnyReply:
        self.did.append(f"clear {name}")
        self.runs.pop(name, None)
        return Done()

    def running(self, prefix: str) -> int:
        return sum(run.runs for name, run in self.runs.items() if name.startswith(prefix))
