"""What can move the core: one frozen type a kind. Nothing else reaches it.

One batch of a node becomes, in this order: ``NodeReported`` (if the batch has facts), ``Reported``,
``Arrived`` for each item in the order of its position, ``Sampled`` (if it has GPU readings) and ``Replicas``
(if it has a list). All of them may come twice: an item that is known already yields no line.

At a start the order is: ``Core.fold`` of every stored line, then ``Shaped``, then ``Recalled`` for each stored node,
``Declared`` for each deployment, then whatever arrives.
"""

from typing import Any

import msgspec

from controller.core.fleet.adoption import Adoption
from controller.core.fleet.settings import Settings
from vocab.messages import GpuStatus, Item, NodeFacts, ReplicaStatus


class Deployment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A model to be kept running: ``replicas`` of it, never fewer than ``min_ready`` serving by our own doing.

    ``gpus_per_replica`` are all GPUs of one replica; with ``nodes_per_replica`` more than one it is a group over so
    many nodes, with equally many GPUs on each.
    ``gpus`` pins it to these GPUs (empty: any). The seconds are those of a drain: ``prestop_s`` out of
    rotation, then up to ``drain_s`` for open requests, then ``kill_s`` between TERM and KILL. ``manager_kill_s``: what
    a manager that is not Corral leaves from its stop to SIGKILL (None: not known).
    """

    name: str
    replicas: int = 1
    gpus_per_replica: int = 1
    nodes_per_replica: int = 1
    island: str = "preferred"  # or required: all its GPUs of a node in one NVLink island
    min_ready: int = 1
    model: str = ""
    engine: str = "torch"
    options: dict[str, Any] = {}
    gpus: tuple[str, ...] = ()
    prestop_s: float = 0.0
    drain_s: float = 120.0
    kill_s: float = 10.0
    manager_kill_s: float | None = None
    managed_by: str = "corral"  # or systemd-unit, kubernetes, slurm, hook, none: who starts its replicas

    @property
    def gpus_per_node(self) -> int:
        """How many GPUs of one node a replica takes."""
        return self.gpus_per_replica // self.nodes_per_replica


class Stimulus(msgspec.Struct, frozen=True, kw_only=True, tag_field="stimulus"):
    """Base: a stimulus can be written down as JSON and played again."""


class Recalled(Stimulus, frozen=True, kw_only=True, tag="recalled"):
    """What the store knows of a node from before this start. Not a sign of life."""

    facts: NodeFacts


class Declared(Stimulus, frozen=True, kw_only=True, tag="declared"):
    """A deployment as the configuration has it; ``replicas`` 0 drains what is left of one."""

    deployment: Deployment


class NodeReported(Stimulus, frozen=True, kw_only=True, tag="node_reported"):
    """A node's own account of itself: inventory, boot, level."""

    facts: NodeFacts


class Reported(Stimulus, frozen=True, kw_only=True, tag="reported"):
    """A heartbeat of a node; ``paused``: its PAUSE file stands, nothing harmful is done there."""

    node: str
    paused: bool = False


class Knocked(Stimulus, frozen=True, kw_only=True, tag="knocked"):
    """A report of a node has arrived and waits for its turn: what it says is not known yet, but silent it is not."""

    node: str


class Deaf(Stimulus, frozen=True, kw_only=True, tag="deaf"):
    """For so long, until now, we did not read what arrived: that time is nobody's silence."""

    seconds: float


class Sampled(Stimulus, frozen=True, kw_only=True, tag="sampled"):
    """The latest readings of GPUs of a node; those left out are unchanged."""

    node: str
    gpus: tuple[GpuStatus, ...]


class Replicas(Stimulus, frozen=True, kw_only=True, tag="replicas"):
    """All replicas of a node as its agent sees them. One that the core does not know is adopted.

    ``whole`` false: only some of them, the others are as before (a recording shows one at a time).
    """

    node: str
    statuses: tuple[ReplicaStatus, ...]
    whole: bool = True


class Arrived(Stimulus, frozen=True, kw_only=True, tag="arrived"):
    """One item of a node's spool: an event, a cleared signal, a fence or the outcome of an order."""

    node: str
    item: Item


class Asked(Stimulus, frozen=True, kw_only=True, tag="asked"):
    """A person orders something. What is refused answers with a hold line of op ``refused``, or a note ``refused``.

    ``do``                 names
    ``hold``               ``gpu`` or ``node``, ``reason``
    ``lift``               ``hold`` (its id), or ``gpu``/``node`` for all of ``owner``; another's only with ``force``
    ``pause``, ``resume``  nothing (everything), ``pool`` or ``node``
    ``approve``            ``action`` (a waiting one), or ``gpu``/``node``/``incident`` for those that wait there
    ``cancel``             ``action``, or ``gpu``/``node``/``incident`` for its unfinished drains and repairs
    ``release``            ``gpu`` or ``incident``: back to service, whatever the policy says
    ``drain``              ``gpu``, ``node`` or ``replica``: held, replaced elsewhere, drained; with ``cut_short`` what
                           drains already ends now
    ``set_healthy``        ``gpu``: its conditions are cleared; the next bad signal opens them again
    ``discard_backlog``    nothing: decisions that wait for a budget are cancelled
    ``undo``               ``since_s``, ``rule`` (a code; None: of all): what automation did since is taken back
    ``maintain``           ``node``, ``until`` (seconds since the epoch): held, drained and left alone until then
    ``maintained``         ``node``: its maintenance ends now
    ``close``              ``incident``, and ``verdict``: right, wrong, or none; of a closed one a verdict is enough
    """

    do: str
    by: str = ""
    reason: str = ""
    owner: str = "operator"
    force: bool = False
    cut_short: bool = False
    gpu: str | None = None
    node: str | None = None
    pool: str | None = None
    replica: str | None = None
    deployment: str | None = None
    incident: str | None = None
    hold: str | None = None
    action: str | None = None
    since_s: float | None = None
    rule: str | None = None
    verdict: str | None = None
    until: float | None = None


class Reached(Stimulus, frozen=True, kw_only=True, tag="reached"):
    """Whether observer ``by`` (gateway, controller or another node) can reach node ``of``."""

    of: str
    by: str
    ok: bool


class Shaped(Stimulus, frozen=True, kw_only=True, tag="shaped"):
    """How the fleet is divided: pools of nodes, and failure domains (a rack, a switch) with their nodes.

    ``powered``: the nodes whose power is in the controller's hands. ``spares``: how many free GPUs a pool keeps for
    replacements.
    """

    pools: dict[str, tuple[str, ...]] = {}
    domains: dict[str, tuple[str, ...]] = {}
    powered: tuple[str, ...] = ()
    spares: dict[str, int] = {}


class Adopted(Stimulus, frozen=True, kw_only=True, tag="adopted"):
    """A policy was adopted and is in force from now on; rules that had fallen back act again, and count anew.

    ``words``: which version, by whom and why. A core that starts later is made with these settings. ``adoption``: it is
    to be numbered and stored before the core is told.
    """

    settings: Settings
    words: str = ""
    adoption: Adoption | None = None


class Managing(Stimulus, frozen=True, kw_only=True, tag="managing"):
    """A manager that Corral works through (slurm, kubernetes, systemd-unit, hook), and whether it answers.

    ``nodes``: it manages nodes; what it says of each (``Managed``) is told before it is called ok for the first time.
    ``ends``: it ends replicas when asked. ``whole``: its work cannot be told apart by GPU, so a repair of one GPU waits
    until nothing of it runs on the node. ``resume_lifts``: when a person gives back what we closed, our hold ends;
    else it is closed again.
    """

    by: str
    ok: bool = False
    why: str = "it has not answered yet"
    nodes: bool = False
    ends: bool = False
    whole: bool = False
    resume_lifts: bool = False


class Managed(Stimulus, frozen=True, kw_only=True, tag="managed"):
    """What a manager says of one of its nodes.

    ``grain``: the least that it keeps new work off when asked: ``gpu``, ``node`` or ``none``. ``ours``: the name of the
    node, or of GPUs, on which our mark stands there. ``busy``: whether its work runs on the node (None: it does not
    know). ``other``: who else is at work on the node, or has closed it. ``began_at``: since when its memory is whole,
    seconds since the epoch: a mark that it has not kept over that moment was not taken away by a person.
    """

    node: str
    by: str
    grain: str = "node"
    ours: tuple[str, ...] = ()
    busy: bool | None = None
    other: str = ""
    began_at: float = 0.0
    gone: bool = False  # it is not, or no longer, one of its nodes


AnyStimulus = (
    Adopted
    | Shaped
    | Recalled
    | Declared
    | NodeReported
    | Reported
    | Knocked
    | Deaf
    | Sampled
    | Replicas
    | Arrived
    | Asked
    | Reached
    | Managing
    | Managed
)
