"""Replicas as units of systemd, by way of the root helper: the join of ``agent.replicas`` and ``agent.roothelper``."""

from agent.replicas.record import ReplicaRecord
from agent.replicas.units import Last
from agent.roothelper.client import Helper
from agent.roothelper.requests import (
    AnyReply,
    AnyRequest,
    ClearReplica,
    Denied,
    EndReplica,
    Failed,
    GroupPart,
    ReadReplica,
    ReplicaRun,
    Slice,
    Started,
    StartReplica,
)
from vocab.errors import Refused, Unreachable
from vocab.observations import Exit

OOM = "oom-kill"  # systemd's word for it
KILLED = 9


class HelperUnits:
    """The units of one node."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper

    async def start(self, record: ReplicaRecord) -> int:
        """Start the unit of this record; its main process. Raises Refused or Unreachable."""
        reply = await self._ask(request_of(record))
        if not isinstance(reply, Started):
            raise Unreachable(f"the root helper gave an odd answer: {reply}")
        return reply.pid

    async def end(self, replica: str, *, kill: bool) -> None:
        """SIGTERM to its main process, or SIGKILL to all of it. Raises Refused or Unreachable."""
        await self._ask(EndReplica(replica=replica, kill=kill))

    async def last(self, replica: str) -> Last | None:
        """How it ended; None while it runs. Raises Refused or Unreachable."""
        reply = await self._ask(ReadReplica(replica=replica))
        if not isinstance(reply, ReplicaRun):
            raise Unreachable(f"the root helper gave an odd answer: {reply}")
        return last_of(reply)

    async def clear(self, replica: str) -> None:
        """Forget that it ended. Raises Refused or Unreachable."""
        await self._ask(ClearReplica(replica=replica))

    async def _ask(self, request: AnyRequest) -> AnyReply:
        reply = await self._helper.ask(request)
        if isinstance(reply, Denied | Failed):
            raise Refused(f"the root helper: {reply.why}")
        return reply


def request_of(record: ReplicaRecord) -> StartReplica:
    """What is asked for a record."""
    spec, group = record.share, record.group
    parts = ((member.gpu, member.mig) for member in spec.members)
    return StartReplica(
        replica=spec.replica,
        deployment=spec.deployment,
        engine=spec.engine,
        model=spec.model,
        gpus=tuple(member.gpu for member in spec.members),
        slices=tuple(Slice(gpu, mig.gi, mig.ci) for gpu, mig in parts if mig is not None and mig.ci is not None),
        port=record.port,
        drain_s=spec.drain_s,
        kill_s=spec.kill_s,
        options={name: value for name, value in spec.options.items() if value is not None},
        group=None if group is None else GroupPart(group.rank, group.nodes, group.gpus, group.leader, group.port),
    )


def last_of(run: ReplicaRun) -> Last | None:
    """How a unit's main process ended; None while it runs. A unit that is gone has told nobody."""
    if not run.known:
        return Last(Exit(), "")
    if run.result == OOM:  # whatever its main process made of it: the kernel took one of its processes for memory
        return Last(Exit(signal=KILLED, text="the kernel killed it for memory (oom-kill)"), run.log)
    if run.code is None and run.signal is None:
        return None if run.runs else Last(Exit(), run.log)
    return Last(Exit(code=run.code, signal=run.signal), run.log)
