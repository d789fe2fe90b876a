"""The end by force: SIGTERM, and after it SIGKILL, to all that belongs to a replica."""

import logging
import signal

from agent.replicas import identity
from agent.replicas.record import ReplicaRecord
from agent.replicas.replica import Replica
from agent.replicas.units import Lodging
from vocab.clock import Clock

log = logging.getLogger(__name__)


class Force:
    """Of one node. When each signal was sent stands in the replica, and when its drain began on disk as well."""

    def __init__(self, clock: Clock, boot: str, lodging: Lodging | None) -> None:
        self._clock = clock
        self._boot = boot
        self._lodging = lodging

    def terminate(self, replica: Replica) -> None:
        """Tell it to end."""
        now = self._clock.monotonic()
        replica.terminated_at = now
        replica.keep(drain_at=now)
        log.warning("replica is told to end: SIGTERM", extra={"replica": replica.record.replica})
        self._signal(replica.record, signal.SIGTERM)

    def kill(self, replica: Replica) -> None:
        """End it; asked for again where it still lives, for the driver may hold a process back."""
        record = replica.record
        again = replica.killed_at is not None
        replica.killed_at = self._clock.monotonic()
        state = identity.stat(record.pid or 0)
        log.error(
            "replica still lives after SIGKILL" if again else "replica did not end: SIGKILL",
            extra={"replica": record.replica, "pid": record.pid, "state": state.state if state else "gone"},
        )
        self._signal(record, signal.SIGKILL)

    def _signal(self, record: ReplicaRecord, number: signal.Signals) -> None:
        """To all that belongs to it: of a unit by whoever started it, which may take a moment."""
        if record.unit is None:
            identity.send_to_session(record.identity, record.mark, number, self._boot)
        elif self._lodging is not None:
            send = self._lodging.kill if number is signal.SIGKILL else self._lodging.terminate
            send(record.replica)
