"""Processes that hang in the NVIDIA driver: in state D, which no signal ends. Only a reboot frees them.

Three looks in a row of the host's own count; or one process of the driver's tools that stays in D for as long as the
kernel itself waits before it complains; or one whose driver call has run out of time, at once: two witnesses. State D
alone is normal for moments. A process that is a replica's is judged with its replica.

The kernel's own complaint (complaints.py) is evidence; with a driver call that has run out of time it is beyond doubt.
A crash in the driver is so by itself.
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.probes.complaints import CRASHED, Blocked, Complaints
from agent.probes.figures import node_finding
from agent.probes.probe import Finding, Verdict
from agent.probes.scene import Scene
from agent.probes.streak import NEEDED
from vocab.events import Recovery, Severity, Source
from vocab.observations import AnyObservation, DriverCall, HostSample, KernelRecord, NodeSeen, ProcessSeen
from vocab.programs import TOOLS

CODE = "driver_hang"
PATIENCE_S = 120.0  # kernel.hung_task_timeout_secs
JOINED_S = 600.0  # a complaint and a time-out this close together are of one hang
TIMED_OUT = frozenset({"TIMEOUT", "HUNG"})


class Stuck(msgspec.Struct):
    """A process in state D: since when, and whether it counts beyond doubt."""

    name: str | None
    since: float
    tool: bool
    said: bool = False


class HangProbe(msgspec.Struct):
    """Follows processes in state D, and which calls of which processes ran out of time."""

    counted: int = 0  # looks in a row at which the host counted some
    said: bool = False
    stuck: dict[str, Stuck] = {}  # by pid
    overdue: dict[str, str] = {}  # pid -> the driver call that it is in
    boot: str | None = None
    complaints: Complaints = msgspec.field(default_factory=Complaints)
    complained: dict[str, Blocked] = {}  # pid -> what was said to hang in the driver
    timed_out_at: float | None = None  # when a driver call last did

    def observe(self, observation: AnyObservation, scene: Scene, now: float) -> Sequence[Verdict]:
        """Take a look at the host or at a process, or a driver call."""
        match observation:
            case KernelRecord(line=str(line)):
                return self._line(line, observation, now)
            case HostSample():
                return list(self._host(observation))
            case ProcessSeen():
                return list(self._process(observation, now))
            case DriverCall():
                return list(self._call(observation, now))
            case NodeSeen(boot_id=boot_id):
                if self.boot not in {None, boot_id}:
                    self.counted, self.said, self.stuck, self.overdue = 0, False, {}, {}
                    self.complaints, self.complained, self.timed_out_at = Complaints(), {}, None
                self.boot = boot_id
        return ()

    def _host(self, seen: HostSample) -> Iterator[Verdict]:
        count = seen.readings.get("nvidia_d_state")
        if not isinstance(count, int | float):
            return
        self.counted = self.counted + 1 if count > 0 else 0
        if count == 0:
            self.said = False
        if self.counted >= NEEDED and not self.said:
            self.said = True
            text = f"{count:g} processes hang in the NVIDIA driver"
            yield node_finding(CODE, seen.at, text, fields={"nvidia_d_state": count}, readings=seen.readings)

    def _line(self, line: str, record: KernelRecord, now: float) -> Sequence[Verdict]:
        """The kernel's complaint, or a line of the trace below one."""
        if record.facility not in {None, 0} or record.backlog:
            return ()  # a program wrote it, or it is long over
        blocked = self.complaints.read(line, now)
        if blocked is None or blocked.pid in self.complained:
            return ()
        if blocked.pid in self.stuck and blocked.state != CRASHED:
            return ()  # it is known, and judged by what is seen of it
        self.complained[blocked.pid] = blocked
        return (self._complaint(blocked, record.at, now),)

    def _complaint(self, blocked: Blocked, at: float, now: float) -> Finding:
        sure = self.timed_out_at is not None and now - self.timed_out_at <= JOINED_S
        crashed = blocked.state == CRASHED
        does = "crashed" if crashed else "hangs"
        return node_finding(
            CODE,
            at,
            f"the kernel says that {blocked.name} (pid {blocked.pid}) {does} in the NVIDIA driver",
            source=Source.KERNEL,
            pid=int(blocked.pid),
            process=blocked.name,
            severity=Severity.CRITICAL if sure else None if crashed else Severity.WARNING,
            recovery=None if sure or crashed else Recovery.INVESTIGATE,
            first=(blocked.pid, "kernel", sure),
            fields={"state": blocked.state, "stuck_child": int(blocked.pid)},
        )

    def _process(self, seen: ProcessSeen, now: float) -> Iterator[Verdict]:
        key, known = str(seen.pid), self.stuck.get(str(seen.pid))
        if seen.state != "D" or seen.replica is not None:
            self.stuck.pop(key, None)
            if seen.state == "gone":
                self.overdue.pop(key, None)
            return
        if known is None:
            tool = (seen.name or "").startswith(TOOLS)
            self.stuck[key] = Stuck(seen.name, now, tool)
        yield from self._judge(key, seen.at, now)

    def _call(self, seen: DriverCall, now: float) -> Iterator[Verdict]:
        if seen.pid is None:
            return
        key = str(seen.pid)
        if seen.state == "returned":
            self.overdue.pop(key, None)
        elif seen.state == "failed" and seen.error in TIMED_OUT:
            self.overdue[key], self.timed_out_at = seen.call, now
            late = [one for one in self.complained.values() if now - one.at <= JOINED_S]
            if late:
                yield self._complaint(late[-1], seen.at, now)
            yield from self._judge(key, seen.at, now)

    def _judge(self, key: str, at: float, now: float) -> Iterator[Verdict]:
        stuck = self.stuck.get(key)
        if stuck is None or stuck.said:
            return
        call = self.overdue.get(key)
        if call is None and not (stuck.tool and now >= stuck.since + PATIENCE_S):
            return
        stuck.said = True
        name = stuck.name or f"process {key}"
        text = f"{name} (pid {key}) hangs in the kernel" + (f": {call} has run out of time" if call else "")
        severity = Severity.CRITICAL if call else None
        yield node_finding(
            CODE,
            at,
            text,
            pid=int(key),
            process=stuck.name,
            severity=severity,
            first=(key,),
            fields={"call": call, "state": "D", "stuck_child": int(key)},
        )

    def tick(self, scene: Scene, now: float) -> Sequence[Verdict]:
        """Say which of the driver's tools have hung for too long."""
        return [v for key in list(self.stuck) if now >= self._due(key) for v in self._judge(key, now, now)]

    def _due(self, key: str) -> float:
        stuck = self.stuck[key]
        return stuck.since + PATIENCE_S if stuck.tool and not stuck.said else float("inf")

    def next_deadline(self) -> float | None:
        """When the first of them has hung for too long."""
        due = min((self._due(key) for key in self.stuck), default=float("inf"))
        return None if due == float("inf") else due
