"""What is on disk of a replica, so that an agent that was killed finds its processes again.

``intent.json``  a start is under way: written before the process exists
``record.json``  the process exists: pid, start time, boot id, port (also read by others on the node)
``ended.json``   the last process has ended, and how

All are written durably. The folder is ``run_dir/replicas/ID`` and also holds the beat and the log.
"""

import contextlib
import os
from pathlib import Path

import msgspec

from agent.adapters.command import COMMAND
from agent.adapters.engines import ENGINES
from agent.adapters.group import Group, group_of, share_of
from agent.replicas.cgroup import processes
from agent.replicas.identity import Identity, survivors
from vocab.messages import ReplicaSpec
from vocab.observations import Exit, Member
from wire.disk import sync_folder, write_durably

REPLICA, BEAT = "CORRAL_REPLICA", "CORRAL_BEAT"
UNIT_PREFIX = "corral-replica-"
TAIL_BYTES = 32_768  # the causes of an engine with several processes stand above the last line
PASSED = 0o711  # of a folder that the replica's user has to go through and may not read
KEPT_LOGS = 20  # folders of replicas that are no longer wanted, kept for their logs


def place_of(replica: str) -> str:
    """What a replica is called in a folder and as a unit: deployments may have a slash in their names."""
    return replica.replace("/", ":")


def unit_of(replica: str) -> str:
    """The unit of a replica, where the root helper starts it."""
    return f"{UNIT_PREFIX}{place_of(replica)}.service"


def marks(replica: str, beat: Path) -> dict[str, str]:
    """What stands in the environment of a replica's processes: whose they are, and of which agent's folder."""
    return {REPLICA: replica, BEAT: str(beat)}


class ReplicaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A started process. Times without an epoch are CLOCK_MONOTONIC seconds of ``boot_id``."""

    replica: str
    deployment: str
    members: tuple[Member, ...]
    pid: int | None  # None only in an intent
    start_s: float | None
    boot_id: str
    port: int
    url: str
    token: str
    attempt: int
    spec: ReplicaSpec
    began: float  # monotonic: when it was started
    crashes: tuple[float, ...] = ()  # monotonic: ends that nobody asked for, under this token
    drain_at: float | None = None  # monotonic: when it was first told to exit
    ended_at: float | None = None
    exit: Exit | None = None
    unit: str | None = None  # of systemd; without one it is a process of the agent's user, detached
    node: str = ""  # on which it runs: of a group over several, ``members`` are all of it

    @property
    def identity(self) -> Identity:
        """The process; only of a record that has one."""
        assert self.pid is not None
        assert self.start_s is not None
        return Identity(self.pid, self.start_s, self.boot_id)

    @property
    def group(self) -> Group | None:
        """What it is among the processes of other nodes, if it is a group."""
        return group_of(self.spec, self.node)

    @property
    def share(self) -> ReplicaSpec:
        """What it was started for, with the members of this node alone."""
        return share_of(self.spec, self.node)

    @property
    def mark(self) -> str:
        """What stands in the environment of the process and of all that it starts."""
        return f"{REPLICA}={self.replica}"

    @property
    def gpus(self) -> tuple[str, ...]:
        """The UUIDs of its members."""
        return tuple(member.gpu for member in self.members)

    def left(self, boot: str) -> tuple[int, ...]:
        """Its living processes: once its leader has ended, what that has left behind."""
        if self.unit is None:
            return survivors(self.identity, self.mark, boot)
        return processes(self.unit) if self.boot_id == boot else ()


class Folder:
    """``run_dir/replicas/ID``."""

    def __init__(self, run_dir: Path, replica: str) -> None:
        self.path = run_dir.absolute() / "replicas" / place_of(replica)
        self.beat = self.path / "beat"
        self.log = self.path / "log"
        self._intent = self.path / "intent.json"
        self._record = self.path / "record.json"
        self._ended = self.path / "ended.json"

    def make(self) -> None:
        """Create the folder and make its name durable."""
        self.path.mkdir(parents=True, exist_ok=True)
        sync_folder(self.path.parent)

    def intend(self, record: ReplicaRecord) -> None:
        """A process is about to be started."""
        write_durably(self._intent, msgspec.json.encode(record))

    def record(self, record: ReplicaRecord) -> None:
        """The process exists (or its record has changed)."""
        write_durably(self._record, msgspec.json.encode(record))
        _remove(self._intent, self._ended)

    def end(self, record: ReplicaRecord) -> None:
        """The process has ended."""
        write_durably(self._ended, msgspec.json.encode(record))
        _remove(self._intent, self._record, self.beat)

    def forget(self) -> None:
        """Nothing is known of this replica any more; its log stays."""
        _remove(self._intent, self._record, self._ended, self.beat)

    def intended(self) -> ReplicaRecord | None:
        """The start that was under way."""
        return _read(self._intent)

    def recorded(self) -> ReplicaRecord | None:
        """The process that was recorded as running."""
        return _read(self._record)

    def ended(self) -> ReplicaRecord | None:
        """The process that was recorded as ended."""
        return _read(self._ended)

    def lend(self, group: int) -> None:
        """Let the replica's user, whose group this is, write a new beat, and nothing else in here."""
        self.path.parent.chmod(PASSED)
        self.path.chmod(PASSED)
        self.beat.unlink(missing_ok=True)
        handle = os.open(self.beat, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.fchown(handle, -1, group)
            os.fchmod(handle, 0o660)
        finally:
            os.close(handle)

    def keep_log(self, text: str) -> None:
        """The end of a log that lies elsewhere."""
        with contextlib.suppress(OSError):
            self.log.write_text(text)

    def turn_log(self) -> None:
        """Keep the log of the process before as ``log.1`` and begin a new one."""
        with contextlib.suppress(FileNotFoundError):
            self.log.replace(self.path / "log.1")

    def last_words(self, engine: str) -> str | None:
        """The line of the log that says why the process ended, as this engine puts it; at most 200 characters."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
                lines = log.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return None
        told = ENGINES.get(engine, COMMAND).last_words(lines)
        return told[:200] if told else None


def _read(path: Path) -> ReplicaRecord | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=ReplicaRecord)
    except (OSError, msgspec.DecodeError):
        return None  # a record that cannot be read names no process, and what is not named is not touched


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def known(run_dir: Path) -> tuple[str, ...]:
    """The replicas that have a folder."""
    place = run_dir / "replicas"
    names = (entry.name for entry in place.iterdir() if entry.is_dir()) if place.is_dir() else ()
    return tuple(sorted(name.replace(":", "/") for name in names))


def prune(run_dir: Path, keep: frozenset[str]) -> None:
    """Remove the oldest folders that hold only logs, all but the newest ``KEPT_LOGS``."""
    place = run_dir / "replicas"
    idle = [place / place_of(name) for name in known(run_dir) if name not in keep]
    idle.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in idle[KEPT_LOGS:]:
        for file in path.iterdir():
            file.unlink(missing_ok=True)
        path.rmdir()
