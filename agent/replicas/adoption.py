"""What a new agent makes of the folder of a replica: a process to take over, one that has ended, or nothing.

A crash of the agent may have come between any two writes; each case is decided by evidence (pid, start
time, boot id, command line), never by the order in which things should have happened.
"""

import msgspec

from agent.replicas.cgroup import leader
from agent.replicas.ending import named
from agent.replicas.identity import alive, find
from agent.replicas.record import Folder, ReplicaRecord, marks
from vocab.observations import Exit


def take_over(folder: Folder, boot: str, now: float) -> ReplicaRecord | None:
    """The record to go on with, written back to disk; one with ``exit`` has ended. ``now`` is monotonic.

    Records of an earlier boot are forgotten: their pids mean nothing any more.
    """
    records = [record for record in (folder.intended(), folder.recorded(), folder.ended()) if record]
    if any(record.boot_id != boot for record in records):
        folder.forget()
        return None
    return _started_unrecorded(folder, boot) or _recorded(folder, boot, now) or _ended(folder)


def _started_unrecorded(folder: Folder, boot: str) -> ReplicaRecord | None:
    """The agent was killed between the intent and the record: the process, if it came to be."""
    intent = folder.intended()
    if intent is None:
        return None
    marked = marks(intent.replica, folder.beat)
    found = leader(intent.unit, boot) if intent.unit is not None else find(marked, boot)
    if found is None:
        return None
    record = msgspec.structs.replace(intent, pid=found.pid, start_s=found.start_s)
    folder.record(record)
    return record


def _recorded(folder: Folder, boot: str, now: float) -> ReplicaRecord | None:
    record = folder.recorded()
    if record is None:
        return None
    if record.unit is not None or alive(record.identity, boot) or record.left(boot):
        return record  # how a unit ended is still to be asked
    crashes = record.crashes if record.drain_at is not None else (*record.crashes, now)
    unseen = named(Exit(), asked=record.drain_at is not None, killed=False)  # nobody was there who could be told
    over = msgspec.structs.replace(record, exit=unseen, ended_at=now, crashes=crashes)
    folder.end(over)
    return over


def _ended(folder: Folder) -> ReplicaRecord | None:
    """A process that is known to have ended; a start that never came to be is dropped."""
    record = folder.ended()
    if record is None:
        folder.forget()
        return None
    folder.end(record)
    return record
