"""What can be asked of the root helper and what it answers: one JSON line each way, then the connection ends.

The verbs are this list and no more. Whatever does not decode as one of them is refused before anything is done.
"""

from typing import Annotated

import msgspec

from vocab.errors import InputError

MOST_BYTES = 64 * 1024  # of a request; the longest real one names 16 GPUs and an engine's options
MOST_GPUS = 64
OWN_UNIT = "corral-agent.service"  # of the agent, its children, and the replicas that it started by itself
FABRIC_MANAGER = "nvidia-fabricmanager.service"

Uuid = Annotated[str, msgspec.Meta(pattern=r"^GPU-[0-9a-fA-F-]{8,40}\Z", max_length=48)]
Unit = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.@-]{1,120}\.service\Z", max_length=128)]
SiteUnit = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9:_.@\\-]{1,240}\.service\Z", max_length=250)]
ORDER = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z"  # a folder bears its name
Order = Annotated[str, msgspec.Meta(pattern=ORDER, max_length=64)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}\Z", max_length=128)]
OptionName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}\Z")]
Word = Annotated[str, msgspec.Meta(max_length=4096)]
Option = bool | int | float | Word | Annotated[tuple[Word, ...], msgspec.Meta(max_length=256)]
Gpus = Annotated[tuple[Uuid, ...], msgspec.Meta(min_length=1, max_length=MOST_GPUS)]


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="verb", forbid_unknown_fields=True):
    """Base of all requests."""


class Ask(Request, frozen=True, kw_only=True, tag="ask"):
    """What can be done here?"""


class Survey(Request, frozen=True, kw_only=True, tag="survey"):
    """Who holds these GPUs, which services run, who is logged in, who inhibits a shutdown?"""

    gpus: Annotated[tuple[Uuid, ...], msgspec.Meta(max_length=MOST_GPUS)]


class StopService(Request, frozen=True, kw_only=True, tag="stop_service"):
    """Stop one of the configured services."""

    unit: Unit


class StartService(Request, frozen=True, kw_only=True, tag="start_service"):
    """Start one of the configured services."""

    unit: Unit


class Collect(Request, frozen=True, kw_only=True, tag="collect"):
    """Take a vendor's bug report for an order; killed with all that it started after ``limit_s``."""

    order: Order
    limit_s: Annotated[float, msgspec.Meta(gt=0.0, le=120.0)]


class ResetGpus(Request, frozen=True, kw_only=True, tag="reset"):
    """Reset these GPUs, which nobody may hold."""

    gpus: Gpus


class Reboot(Request, frozen=True, kw_only=True, tag="reboot"):
    """Reboot the node, on which nobody may be working."""


class Slice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A MIG instance: of this GPU, GPU instance ``gi``, compute instance ``ci``."""

    gpu: Uuid
    gi: Annotated[int, msgspec.Meta(ge=0, le=255)]
    ci: Annotated[int, msgspec.Meta(ge=0, le=255)]


class GroupPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which process it is of a replica on several nodes, how many GPUs all have, and where they meet."""

    rank: Annotated[int, msgspec.Meta(ge=0, le=1023)]
    nodes: Annotated[int, msgspec.Meta(ge=2, le=1024)]
    gpus: Annotated[int, msgspec.Meta(ge=2, le=16384)]
    leader: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}\Z")]
    port: Annotated[int, msgspec.Meta(ge=1024, le=65535)]


class StartReplica(Request, frozen=True, kw_only=True, tag="start_replica"):
    """Start an engine as a unit of its own, in the one way that root's configuration gives it. No word of a command."""

    replica: Name
    deployment: Name
    engine: Annotated[str, msgspec.Meta(pattern=r"^[a-z]{1,32}\Z")]
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    gpus: Gpus
    slices: Annotated[tuple[Slice, ...], msgspec.Meta(max_length=MOST_GPUS)] = ()  # of gpus, where it has parts of them
    port: Annotated[int, msgspec.Meta(ge=1024, le=65535)]
    drain_s: Annotated[float, msgspec.Meta(ge=0.0, le=86400.0)]
    kill_s: Annotated[float, msgspec.Meta(ge=0.0, le=3600.0)]
    options: Annotated[dict[OptionName, Option], msgspec.Meta(max_length=64)] = {}
    group: GroupPart | None = None


class EndReplica(Request, frozen=True, kw_only=True, tag="end_replica"):
    """SIGTERM to a replica's main process, or to what it left behind; with ``kill`` SIGKILL to all of its unit."""

    replica: Name
    kill: bool = False


class ReadReplica(Request, frozen=True, kw_only=True, tag="read_replica"):
    """How does a replica's unit stand, and how did its process end?"""

    replica: Name


class ClearReplica(Request, frozen=True, kw_only=True, tag="clear_replica"):
    """Forget a replica that has ended."""

    replica: Name


class ReadUnit(Request, frozen=True, kw_only=True, tag="read_unit"):
    """How does one of the site's own units stand?"""

    unit: SiteUnit


class StopUnit(Request, frozen=True, kw_only=True, tag="stop_unit"):
    """Have systemd stop one of the site's own units; it is not waited for."""

    unit: SiteUnit


class RestartUnit(Request, frozen=True, kw_only=True, tag="restart_unit"):
    """Have systemd restart one of the site's own units; it is not waited for."""

    unit: SiteUnit


class StartUnit(Request, frozen=True, kw_only=True, tag="start_unit"):
    """Have systemd start one of the site's own units; it is not waited for."""

    unit: SiteUnit


class ReadReport(Request, frozen=True, kw_only=True, tag="read_report"):
    """A piece of the bug report that was taken for an order, from this byte on."""

    order: Order
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0


AnyUnitRequest = ReadUnit | StopUnit | RestartUnit | StartUnit
AnyReplicaRequest = StartReplica | EndReplica | ReadReplica | ClearReplica
AnyNodeRequest = Ask | Survey | StopService | StartService | Collect | ReadReport | ResetGpus | Reboot
AnyRequest = AnyNodeRequest | AnyReplicaRequest | AnyUnitRequest


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A process that has a GPU open. ``unit``: the systemd unit that it belongs to, if any."""

    pid: int
    name: str
    gpus: tuple[str, ...]
    unit: str | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True, tag_field="reply"):
    """Base of all replies."""


class Done(Reply, frozen=True, kw_only=True, tag="done"):
    """It was done. ``path``: where what was collected lies."""

    path: str | None = None


class Denied(Reply, frozen=True, kw_only=True, tag="denied"):
    """Nothing was done, for this reason. ``impossible``: it never will be on this node."""

    why: str
    impossible: bool = False


class Failed(Reply, frozen=True, kw_only=True, tag="failed"):
    """It was tried and did not work; ``unseen``: it was cut off, and nobody knows how it ended."""

    why: str
    unseen: bool = False


class Able(Reply, frozen=True, kw_only=True, tag="able"):
    """The verbs that this node has the means for, and the services that may be stopped, in the order of stopping.

    ``units``: the site's own units that may be stopped and started, by name or by template.
    """

    verbs: tuple[str, ...]
    services: tuple[str, ...]
    units: tuple[str, ...] = ()


class Surveyed(Reply, frozen=True, kw_only=True, tag="surveyed"):
    """The node at this moment. ``running``: services of ours to stop that are active, in the order of stopping.

    ``users`` and ``inhibitors`` are None where nobody could be asked: unknown is not nobody.
    """

    holders: tuple[Holder, ...]
    running: tuple[str, ...]
    users: tuple[str, ...] | None = None
    inhibitors: tuple[str, ...] | None = None


class Started(Reply, frozen=True, kw_only=True, tag="started"):
    """A replica's unit runs, and this is its main process."""

    pid: int


class ReplicaRun(Reply, frozen=True, kw_only=True, tag="replica_run"):
    """The last run of a replica's unit. ``result`` is systemd's word (``success``, ``exit-code``, ``oom-kill``, …).

    ``known`` is false where systemd has no such unit (any more). ``log``: the end of what it wrote.
    """

    known: bool
    runs: bool = False
    pid: int = 0
    result: str = ""
    code: int | None = None
    signal: int | None = None
    log: str = ""


class UnitRun(Reply, frozen=True, kw_only=True, tag="unit_run"):
    """One of the site's units, in systemd's words (``ActiveState``, ``UnitFileState``, ``Result``).

    ``invocation`` is another one each time that it is started; empty where systemd does not remember its last run.
    """

    active: str
    invocation: str = ""
    file_state: str = ""
    result: str = ""


class Piece(Reply, frozen=True, kw_only=True, tag="piece"):
    """A piece of a bug report, which has ``total`` bytes."""

    piece: bytes
    total: int


AnyReply = Done | Denied | Failed | Able | Surveyed | Started | ReplicaRun | UnitRun | Piece

_REQUEST = msgspec.json.Decoder(AnyRequest)
_REPLY = msgspec.json.Decoder(AnyReply)


def request_of(line: bytes) -> AnyRequest:
    """The request in a line. Raises InputError saying what is wrong with it."""
    if len(line) > MOST_BYTES:
        raise InputError(f"the request has more than {MOST_BYTES} bytes")
    try:
        return _REQUEST.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a request: {error}") from error


def reply_of(line: bytes) -> AnyReply:
    """The reply in a line. Raises InputError."""
    try:
        return _REPLY.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a reply: {error}") from error


def encoded(message: AnyRequest | AnyReply) -> bytes:
    """The line."""
    return msgspec.json.encode(message) + b"\n"
