"""Judges from the call table which driver calls hang. Pure: snapshots of the table and times in, changes out.

A call that takes longer than it may is reported once as started, and as returned when it has come back.
When every GPU's thread hangs, or the initialisation does, nothing can be read: that is ``stuck``; the call
that began first names the suspect.
"""

from collections.abc import Mapping

import msgspec

from agent.calls import Call
from agent.sources.frames import FIRST_GPU_SLOT, NODE_SLOT

HANG_AFTER_S = 5.0  # a pass over a GPU takes milliseconds; RPCs to a sick GSP return after 6 s or 45 s


class Change(msgspec.Struct, frozen=True):
    """A call that began to hang (``state`` started) or came back after all (returned)."""

    call: Call
    state: str


class HangWatch:
    """Follows the calls of one child."""

    def __init__(self, hang_after_s: float = HANG_AFTER_S) -> None:
        self._after_s = hang_after_s
        self._hung: dict[int, Call] = {}

    def look(self, under_way: Mapping[int, Call], now_ns: int) -> list[Change]:
        """What has changed since the last look, in slot order."""
        hung = {slot: call for slot, call in under_way.items() if call.overdue_s(now_ns) >= self._after_s}
        back = [Change(call, "returned") for slot, call in self._hung.items() if hung.get(slot) != call]
        fresh = [Change(call, "started") for slot, call in hung.items() if self._hung.get(slot) != call]
        self._hung = hung
        return [*back, *fresh]

    @property
    def hung(self) -> Mapping[int, Call]:
        """The calls that hang, by slot."""
        return self._hung

    def stuck(self, gpus: int) -> bool:
        """Whether nothing can be read: all ``gpus`` threads hang, or there are none yet and the start hangs."""
        threads = sum(slot >= FIRST_GPU_SLOT for slot in self._hung)
        return threads >= gpus if gpus else NODE_SLOT in self._hung

    def suspect(self) -> Call | None:
        """The call that began first: with a lock of the whole driver, the one that holds it."""
        return min(self._hung.values(), key=lambda call: call.began_ns, default=None)
