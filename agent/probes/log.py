"""What is remembered of the kernel log beyond the place of reading; all of it survives a restart of the agent."""

import msgspec

from agent.probes.copies import Copies
from agent.probes.quiet import Quiet
from agent.probes.repeats import Repeats
from agent.probes.skew import Skew
from agent.probes.storm import Held
from agent.probes.tape import Tape


class Log(msgspec.Struct):
    """``tapes``: of numbered sources beside /dev/kmsg, which has its own. ``down``: sources whose log has ended.

    ``held``: repeats that are counted and not yet judged.
    """

    copies: Copies = msgspec.field(default_factory=Copies)
    repeats: Repeats = msgspec.field(default_factory=Repeats)
    skew: Skew = msgspec.field(default_factory=Skew)
    quiet: Quiet = msgspec.field(default_factory=Quiet)
    tapes: dict[str, Tape] = {}
    down: set[str] = set()
    held: dict[str, Held] = {}

    def rewind(self) -> None:
        """Another boot: numbers and stamps begin anew."""
        self.copies.clear()
        self.skew.rewind()
        self.tapes.clear()
