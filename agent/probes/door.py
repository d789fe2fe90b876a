"""The door of an engine: what /health answers. It proves nothing about the engine behind it, in either direction.

Three failed looks in a row make a replica that still works *degraded*: slow to answer, not to be restarted. One
good answer ends that. Whether it is dead or wedged is told by its steps and its processes, in other files.
"""

import msgspec

from agent.probes.tenants import Look

IN_A_ROW = 3
GOOD = range(200, 400)


class DoorProbe(msgspec.Struct):
    """Counts failed looks at each door. No finding comes of it, only a word."""

    failed: dict[str, int] = {}

    def looked(self, look: Look) -> None:
        """Take one look in; an answer that is not known this time counts for nothing."""
        health, replica = look.seen.health, look.tenant.replica
        if look.is_new_life:
            self.failed.pop(replica, None)
        if health is None:
            return
        bad = not (isinstance(health, int) and health in GOOD)
        self.failed[replica] = self.failed.get(replica, 0) + 1 if bad else 0

    def is_shut(self, replica: str) -> bool:
        """Whether it fails again and again."""
        return self.failed.get(replica, 0) >= IN_A_ROW
