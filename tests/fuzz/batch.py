"""What an agent may send: a Batch that decodes is checked, told to the core, and says the same when encoded again."""

from collections.abc import Iterator

import msgspec

from agent.judge import Judge
from controller.core.core import Core
from controller.core.fleet.settings import Settings
from controller.deciding.ingest import checked, decode_batch, stimuli
from tests.agent.made import NODE, fallen, identity, inventory
from tests.fuzz.mutate import document
from tests.fuzz.target import Target
from vocab.errors import InputError
from vocab.events import Cleared, Event, Recovery, Scope, Severity, Source
from vocab.messages import Batch, ClearedItem, EventItem, FenceItem, GpuStatus, NodeFacts, ReplicaStatus, Sequenced
from vocab.observations import Member
from vocab.readings import Readings


def one(data: bytes) -> None:
    """The body of a request."""
    try:
        batch = checked(decode_batch.decode(data))
    except (msgspec.DecodeError, InputError):
        return
    assert decode_batch.decode(msgspec.json.encode(batch)) == batch
    core = Core(Settings())
    for stimulus in stimuli(batch, list(batch.items)):
        for line in core.take(stimulus, 1.0):
            msgspec.json.encode(line)


def seeds() -> Iterator[bytes]:
    """One batch of each thing that an agent reports."""
    judge = Judge(NODE)
    judge.observe(inventory(), 0.0)
    items = [item for item in judge.observe(fallen(1.0), 1.0) if isinstance(item, (EventItem, ClearedItem))]
    gpu = identity(0)
    facts = NodeFacts(node=NODE, boot_id="b1", driver="565.1", gpus=(gpu,), reset_group=((gpu.uuid,),))
    fence = FenceItem(at=1.0, node=NODE, gpu=gpu.uuid, op="placed", why="xid:79")
    ended = Cleared(at="1970-01-01T00:00:01Z", node=NODE, boot_id="b1", gpu=gpu.uuid, code="xid:79", by="reset")
    bare = EventItem(
        Event(
            id="e",
            at=None,
            node=NODE,
            code="power_brake",
            severity=Severity.ERROR,
            recovery=Recovery.INVESTIGATE,
            scope=Scope.GPU,
            source=Source.NVML,
        )
    )
    status = ReplicaStatus(replica="r1", deployment="chat", members=(Member(node=NODE, gpu=gpu.uuid, rank=0),))
    numbered = tuple(Sequenced(n, item) for n, item in enumerate((*items, fence, ClearedItem(ended), bare), 1))
    for more in (
        {},
        {"facts": facts},
        {"facts": facts, "items": numbered},
        {"gpus": (GpuStatus(gpu=gpu.uuid, at=1.0, readings=Readings(temperature_c=50.0)),)},
        {"replicas": (status,), "paused": True},
    ):
        yield msgspec.json.encode(Batch(node=NODE, boot_id="b1", at=1.0, session="s", **more))


TARGET = Target(one, seeds, mutate=document)
