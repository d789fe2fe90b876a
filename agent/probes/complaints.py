"""What the kernel complains of, where that happened in the NVIDIA driver: a task that hangs, spins or crashed there.

A complaint has a head, mostly the process, and a trace below it. It is the driver's if the trace stands in one of its
modules, or if the process is a tool of the driver that hangs or spins. A crash (an Oops) ends its process in the midst
of the driver's work, with locks held: what comes to the driver next may hang.
"""

import re

import msgspec

from vocab.programs import TOOLS

BLOCKED = re.compile(r"INFO: task (.{1,64}):(\d{1,10}) blocked for more than \d+ seconds")
SPINNING = re.compile(r"BUG: soft lockup - CPU#\d+ stuck for \d+s! \[(.{1,64}):(\d{1,10})\]")
IN_DRIVER = re.compile(r"\[(?:nvidia(?:_(?:uvm|modeset|drm|peermem))?|gdrdrv)(?: [0-9a-f]{8,64})?\]")  # build id
TRACE_S = 1.0  # the kernel prints the trace with the complaint
HANGS, SPINS, CRASHED = "D", "R", "crashed"
# Heads that do not name the process: it comes with the line of its processor, or never.
_HEAD = re.compile(
    r"(?P<crash>BUG: unable to handle |BUG: kernel NULL pointer |kernel BUG at |Unable to handle kernel |"
    r"general protection fault(?:, |: [0-9a-f]{4} )|Oops: [0-9a-f]{4} )|"
    r"hard LOCKUP on cpu|\brcu_\w{1,20} (?:self-)?detected (?:expedited )?stall"
)
_SIGNS = ("BUG", "Unable", "general protection", "Oops", "hard LOCKUP", "rcu_")  # one of them is in every head
_PROCESS = re.compile(r"CPU: \d{1,6} (?:UID: \d{1,10} )?PID: (\d{1,10}) Comm: (.{1,64}?) (?:Kdump|Tainted|Not tainted)")
_GUESS = "? "  # a leftover on the stack, perhaps of an older call


class Blocked(msgspec.Struct, frozen=True):
    """A task of which the kernel complains."""

    name: str
    pid: str
    at: float
    state: str = HANGS


class Complaints(msgspec.Struct):
    """The last complaint, while its trace may follow; or its head, until the process is named."""

    blocked: Blocked | None = None
    head: str | None = None
    head_at: float = 0.0

    def read(self, line: str, now: float) -> Blocked | None:
        """Take a line in: the task, once it is sure that it happened in the driver."""
        self._open(line, now)
        blocked = self.blocked
        if blocked is None:
            return None
        if now > blocked.at + TRACE_S:
            self.blocked = None
            return None
        if blocked.state == CRASHED:
            theirs = IN_DRIVER.search(line) is not None and _GUESS not in line
        else:
            theirs = blocked.name.startswith(TOOLS) or IN_DRIVER.search(line) is not None
        if not theirs:
            return None
        self.blocked = None
        return blocked

    def _open(self, line: str, now: float) -> None:
        if found := BLOCKED.search(line):
            self.blocked = Blocked(found[1], found[2], now, HANGS)
        elif found := SPINNING.search(line):
            self.blocked = Blocked(found[1], found[2], now, SPINS)
        elif any(sign in line for sign in _SIGNS) and (found := _HEAD.search(line)):
            self.head, self.head_at = CRASHED if found["crash"] else SPINS, now
        elif self.head is not None and now > self.head_at + TRACE_S:
            self.head = None
        elif self.head is not None and (found := _PROCESS.search(line)):
            self.blocked, self.head = Blocked(found[2], found[1], now, self.head), None
