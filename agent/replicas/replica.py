"""One replica as its supervisor holds it: the record, the pulse, and what has been said to it.

Owned by the supervisor's loop alone. ``actual`` is what the plan sees, ``status`` what the controller is
told, ``seen`` what the judge gets.
"""

import msgspec

from agent.adapters.adapter import Adapter
from agent.adapters.command import COMMAND
from agent.adapters.engines import ENGINES
from agent.adapters.figures import figures
from agent.replicas.canary import Canaries
from agent.replicas.door import Answer
from agent.replicas.ending import looked_at, named, reap
from agent.replicas.identity import family, is_it, raw, stat, variable
from agent.replicas.launch import visible
from agent.replicas.plan import Actual, Stage
from agent.replicas.pulse import Pulse, follow, oldest_wait_s, stepping
from agent.replicas.record import Folder, ReplicaRecord
from vocab.beat import Beat, unpack
from vocab.messages import ReplicaSpec, ReplicaStatus, kv_step
from vocab.observations import Check, Exit, ProcessSeen, ReplicaSeen

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Replica:
    """A process that was started for a spec; after its end, how it ended."""

    def __init__(self, folder: Folder, record: ReplicaRecord) -> None:
        self.folder = folder
        self.record = record
        self._beat = str(folder.beat)
        self.pulse = Pulse()
        self._canaries = Canaries()
        self.was_ready = not self.has_door  # of a part of a group that does not lead its life is all there is to see
        self.admitting: bool | None = None  # as it last answered
        self.withdrawn_at: float | None = None
        self.terminated_at: float | None = None
        self.killed_at: float | None = None
        self.tried_at: float | None = None
        self.looked_at = float("-inf")
        self._heard_at = 0.0  # beats written before its last answer say nothing newer
        self.drain_taken = False
        self.refuses = False
        self.health: int | str | None = None  # of the last look at its door; taken once by ``seen``
        self._door_opens = False  # by the same look
        self.visible = self._devices()
        self.told: Exit | None = None  # how a unit's process ended, once that was learnt
        self.is_gone = False  # its leader has ended
        self._left: tuple[int, ...] = ()  # what its session left behind when its leader ended
        self._parting: Exit | None = None  # how the leader ended, while others of its session still live

    # -- what happens to it ---------------------------------------------------------------------------

    def look(self, boot: str, now: float) -> None:
        """Reap it if it has ended, else read its beat. Never waits."""
        if self.record.exit is not None:
            return
        self.looked_at = now
        process = self.record.identity
        state = stat(process.pid)
        parting = reap(process, state) if self.record.unit is None else None
        if parting is None and process.boot_id == boot and is_it(process, state):
            self._read_beat(now)
            return
        self.is_gone = True
        if self.awaits_word:
            return
        if self._parting is None:
            self._parting = parting or self.told or Exit()
        self._left = self.record.left(boot)
        if self._left:
            if self.terminated_at is None:
                self.terminated_at = now - self.record.spec.kill_s  # nobody is left to end them in good order
            return
        self._end(now)

    def _read_beat(self, now: float) -> None:
        if not self.engine.has_beat:
            return
        beat = unpack(raw(self._beat) or b"")
        if beat is None or beat.pid != self.record.pid:
            return  # being written, or left by the process before
        self.pulse = follow(self.pulse, beat, now)
        self.was_ready |= beat.ready
        if beat.draining:
            self.drain_taken, self.admitting = True, False
            self.keep(drain_at=now)  # unless it was us who asked it to go
        elif beat.ready and beat.written_ns / 1e9 > self._heard_at:
            self.admitting = beat.admitting

    def _devices(self) -> str | None:
        """What it may see of its GPUs. Of a unit, which runs as another user, what it was given."""
        if self.record.unit is not None:
            return ",".join(map(visible, self.record.share.members))
        return variable(self.record.pid, VISIBLE) if self.record.pid is not None else None

    def measured(self, text: str, now: float) -> None:
        """The /metrics of an engine that writes no beat, read at ``now``: they are its beat."""
        told = figures(text, self.engine.meters)
        if told.step is None and told.tokens is None:
            return  # nothing by which it could be seen to move
        running, waiting = told.running or 0, told.waiting or 0
        beat = Beat(
            pid=self.record.pid or 0,
            ready=self.was_ready,
            admitting=self.admitting is not False,
            draining=self.record.drain_at is not None,
            step=told.step if told.step is not None else told.tokens or 0,
            tokens=told.tokens or 0,
            running=running,
            waiting=waiting,
            open_requests=running + waiting,
            written_ns=int(now * 1e9),
            requests_ok=told.ok or 0,
            requests_failed=told.failed or 0,
            kv_ratio=told.kv_ratio or 0.0,
        )
        self.pulse = follow(self.pulse, beat, now)

    def _end(self, now: float) -> None:
        asked = self.asked
        exit_ = named(self._parting or Exit(), asked=asked, killed=self.killed_at is not None, codes=self.engine.exits)
        if not asked:
            exit_ = msgspec.structs.replace(exit_, text=exit_.text or self.folder.last_words(self.engine.name))
        crashes = self.record.crashes if asked else (*self.record.crashes, now)
        self.record = msgspec.structs.replace(self.record, exit=exit_, ended_at=now, crashes=crashes)
        self.folder.end(self.record)

    def keep(self, *, drain_at: float | None = None, token: str | None = None) -> None:
        """Write a changed fact of the living process to its record."""
        if not self.living:
            return
        record = self.record
        if drain_at is not None and record.drain_at is None:
            record = msgspec.structs.replace(record, drain_at=drain_at)
        if token is not None and token != record.token:
            spec = msgspec.structs.replace(record.spec, token=token)
            record = msgspec.structs.replace(record, token=token, spec=spec, crashes=())
        if record != self.record:
            self.record = record
            self.folder.record(record)

    def give_up(self) -> None:
        """No more restarts under this token."""
        last = self.record.exit or Exit()
        self.record = msgspec.structs.replace(self.record, exit=msgspec.structs.replace(last, reason="crash_loop"))
        self.folder.end(self.record)

    def answered(self, answer: Answer, now: float, *, admitting: bool) -> None:
        """It took (or did not take) an order about admission."""
        self._heard(answer, now)
        if answer.taken:
            self.admitting = admitting
            if admitting:
                self.withdrawn_at = None

    def told_to_exit(self, answer: Answer, now: float) -> None:
        """It took (or did not take) the order to drain and exit."""
        self._heard(answer, now)
        if answer.taken:
            self.drain_taken, self.admitting = True, False

    def _heard(self, answer: Answer, now: float) -> None:
        self.refuses = answer.error == "refused"
        self.tried_at = None if answer.taken else now
        self._heard_at = now if answer.taken else self._heard_at

    def probed(self, answer: Answer) -> None:
        """The answer to a look at its health (or, while it starts, at its readiness)."""
        if not self.was_ready:
            self.was_ready = answer.status == 200 or answer.reason == "fenced"
            return
        no_answer = "timeout" if answer.error == "timeout" else "refused"  # one that breaks off has told nothing either
        self.health = answer.status if answer.status is not None else no_answer
        self._door_opens = answer.status == 200
        self.refuses = answer.error == "refused"

    # -- what it is -----------------------------------------------------------------------------------

    @property
    def has_door(self) -> bool:
        """Whether anything can be asked of it: of a group the leader alone serves."""
        return (group := self.record.group) is None or group.leads

    @property
    def beat(self) -> Beat | None:
        """Its latest beat."""
        return self.pulse.beat

    @property
    def engine(self) -> Adapter:
        """What is known of its engine."""
        return ENGINES.get(self.record.spec.engine, COMMAND)

    @property
    def living(self) -> bool:
        """Whether a process of it lives."""
        return self.record.exit is None

    @property
    def awaits_word(self) -> bool:
        """Whether its leader has ended and it is not known yet how: of a unit somebody has to be asked."""
        return self.living and self.is_gone and self.record.unit is not None and self.told is None

    @property
    def asked(self) -> bool:
        """Whether somebody told it to end."""
        return self.record.drain_at is not None

    def is_calm(self, fenced: frozenset[str]) -> bool:
        """Whether nothing is under way with it, and all was done that was ordered: a look a second is enough."""
        admits = self.admitting is not False
        return (self.living and self._parting is None and self.was_ready and self._stage()[0] is Stage.RUNNING) and (
            self.tried_at is None and admits == fenced.isdisjoint(self.record.gpus)
        )

    def is_well(self, now: float) -> bool:
        """Whether its beat goes on and its door opened when it was last looked at."""
        return self._door_opens and self.pulse.beat is not None and self.engine.has_beat and stepping(self.pulse, now)

    def actual(self) -> Actual:
        """As the plan sees it."""
        stage, since = self._stage()
        return Actual(
            replica=self.record.replica,
            stage=stage,
            spec=self.record.spec,
            admitting=self.admitting,
            stage_at=since,
            tried_at=self.tried_at,
            refuses=self.refuses,
            drain_taken=self.drain_taken,
            crashes=self.record.crashes,
            asked=self.asked,
            given_up=self.record.exit is not None and self.record.exit.reason == "crash_loop",
        )

    def _stage(self) -> tuple[Stage, float]:
        if not self.living:
            return Stage.ENDED, self.record.ended_at or 0.0
        for stage, since in (
            (Stage.KILLED, self.killed_at),
            (Stage.TERMINATED, self.terminated_at),
            (Stage.DRAINING, self.record.drain_at),
            (Stage.WITHDRAWN, self.withdrawn_at),
        ):
            if since is not None:
                return stage, since
        return Stage.RUNNING, self.record.began

    def phase(self, *, restarting: bool) -> str:
        """Starting, ready, draining or stopped; one that will be started again is starting."""
        if not self.living:
            return "starting" if restarting else "stopped"
        if self._stage()[0] is not Stage.RUNNING:
            return "draining"
        return "ready" if self.was_ready else "starting"

    def status(self, wanted: ReplicaSpec | None, now: float, *, restarting: bool) -> ReplicaStatus:
        """As the controller is told."""
        record, beat = self.record, (self.beat if self.living else None) or Beat(pid=0)
        runs = self.living and self._stage()[0] is Stage.RUNNING
        token = record.token if wanted is None or (runs and wanted.phase != "run") else wanted.token
        return ReplicaStatus(
            replica=record.replica,
            deployment=record.deployment,
            members=record.members,
            phase=self.phase(restarting=restarting),
            ready=self.living and (beat.ready if self.beat else self.was_ready),
            admitting=self.living and runs and self.was_ready and self.admitting is not False,
            stepping=self.living and stepping(self.pulse, now, by_itself=self.engine.has_beat),
            running=beat.running,
            waiting=beat.waiting,
            open_requests=beat.open_requests,
            kv_ratio=kv_step(beat.kv_ratio) if self.living and self.beat else None,
            url=record.url,
            pid=record.pid if self.living else None,
            attempt=record.attempt,
            token=token,
            exit=record.exit,
            engine=self.engine.name,
        )

    def seen(self, at: float, node: str, now: float, *, restarting: bool) -> ReplicaSeen:
        """As the judge gets it; ``at`` is epoch seconds, ``now`` monotonic."""
        record, beat = self.record, self.beat if self.living else None
        health, self.health = self.health, None
        codes = self.engine.exits
        if self.visible is None and self.living and record.pid is not None:  # at its very start it cannot be read yet
            self.visible = self._devices()
        parting = named(self._parting, asked=self.asked, killed=False, codes=codes) if self._parting else None
        common = ReplicaSeen(
            at=at,
            node=node,
            replica=record.replica,
            deployment=record.deployment,
            members=record.members,
            pids=family(record.pid) if self.living and record.pid is not None else (),
            phase=self.phase(restarting=restarting),
            health=health if self.living else None,
            visible=self.visible,
            ready=False if not self.living else None,
            exit=record.exit or parting,
        )
        if beat is None or common.exit is not None:
            return common
        return msgspec.structs.replace(
            common,
            ready=beat.ready,
            running=beat.running,
            waiting=beat.waiting,
            oldest_wait_s=oldest_wait_s(beat, now),
            step=beat.step,
            tokens=beat.tokens,
            p999_step_s=beat.p999_step_ns / 1e9 or None,
            kv_ratio=beat.kv_ratio,
            open_requests=beat.open_requests,
            error=beat.error_code or None,
            requests_ok=beat.requests_ok,
            requests_failed=beat.requests_failed,
            requests_timed_out=beat.requests_timed_out,
            over_floor=beat.over_floor or None,
            over_usual=beat.over_usual or None,
        )

    def checks(self, at: float, node: str) -> tuple[Check, ...]:
        """What it found when it looked at itself, since the last call."""
        return self._canaries.checks(self.beat if self.living else None, self.record.replica, at, node)

    def remains(self, at: float, node: str) -> list[ProcessSeen]:
        """What its session left behind when its leader ended, process by process; those that have gone since too."""
        return [looked_at(pid, self.record.replica, at, node) for pid in self._left]
