"""The inventory: which GPUs there are, and on which node each is, by what nodes list.

A GPU that its node lists no longer stays known, and takes no work until it is back. One that two nodes list is in one
of them only, and the other's is a claim (``claims``).
"""

from collections.abc import Callable

from msgspec.structs import replace

from controller.core.fleet.agenda import Agenda
from controller.core.fleet.claims import CODE as CLAIMED
from controller.core.fleet.claims import Claims, device_of
from controller.core.fleet.ledger import Ledger
from controller.core.fleet.nodes import Gpu, Node
from controller.core.fleet.work import Work
from vocab.lines import Subject
from vocab.messages import NodeFacts


class Inventory:
    """Of one fleet, whose parts it shares. It alone writes which GPUs are where."""

    def __init__(
        self,
        ledger: Ledger,
        agenda: Agenda,
        work: Work,
        nodes: dict[str, Node],
        gpus: dict[str, Gpu],
        gpus_at: dict[str, dict[str, None]],
        touch: Callable[[Subject], None],
    ) -> None:
        self.claims = Claims()
        self._ledger = ledger
        self._agenda = agenda
        self._work = work
        self._nodes = nodes
        self._gpus = gpus
        self._gpus_at = gpus_at
        self._touch = touch

    def at(self, node: str) -> list[Gpu]:
        """The GPUs of a node, by index."""
        return sorted((self._gpus[uuid] for uuid in self._gpus_at.get(node, ())), key=lambda gpu: gpu.identity.index)

    def size(self, node: str) -> int:
        """How many GPUs of a node are known."""
        return len(self._gpus_at.get(node, ()))

    def take(self, facts: NodeFacts, now: float, *, booted: bool) -> None:
        """What a node lists now; ``booted``: it has booted since it last did."""
        listed, claimed = {identity.uuid for identity in facts.gpus}, {}
        gone = [uuid for uuid in self._gpus_at[facts.node] if uuid not in listed]
        for uuid in gone:
            self._gpus[uuid].listed = False
            self._touch(Subject(gpu=uuid))
        for identity in facts.gpus:
            known = self._gpus.get(identity.uuid)
            if known is None or known.node != facts.node:
                claimed[identity.uuid] = identity
                continue
            if not known.listed:
                self._work.booted[facts.node] = None  # it is back: what a reboot ended is over for it, too
            known.watched = known.watched and known.period_s <= facts.period_s and not booted
            known.identity, known.period_s, known.listed = identity, facts.period_s, True
            if booted:  # what it read before says nothing of what it is now
                known.known_at, known.sampled_at, known.status = now, None, None
            self.watch(known)
        self.claims.put(facts.node, claimed)
        for uuid in (*claimed, *gone):
            self.settle(uuid, now)

    def settle(self, uuid: str, now: float) -> None:
        """Give a GPU to who has it, of those that list it: who had it, else one whose claim is not refused."""
        gpu, claimants = self._gpus.get(uuid), self.claims.of(uuid)
        if gpu is not None and self.keeps(gpu) and not self.is_refused(gpu.node, uuid):
            return
        heir = min((node for node in claimants if not self.is_refused(node, uuid)), default="")
        facts = self._facts(heir)
        if facts is None:
            return
        identity = claimants[facts.node]
        self.claims.drop(uuid, facts.node)
        if gpu is not None:
            self._forget(gpu)
            self.claims.moved |= {gpu.node: None, facts.node: None}
            self._touch(Subject(node=gpu.node))
            self._touch(Subject(node=facts.node))
            if gpu.listed:
                self.claims.add(uuid, gpu.node, gpu.identity)
        self._gpus[uuid] = Gpu(identity, facts.node, now, facts.period_s)
        self._gpus_at[facts.node][uuid] = None
        self.watch(self._gpus[uuid])

    def keeps(self, gpu: Gpu) -> bool:
        """Whether its node has not given it up: it lists it, or cannot say at present."""
        return gpu.listed or self.is_blind(gpu.node)

    def is_blind(self, node: str) -> bool:
        """Whether what a node does not list says nothing: it can read no GPU, or is not up yet."""
        facts = self._facts(node)
        return facts is not None and (facts.booting or facts.unknown_because is not None)

    def is_refused(self, node: str, uuid: str) -> bool:
        """Whether a node's claim to a GPU is refused."""
        return (Subject(node=node), CLAIMED, device_of(uuid)) in self._ledger.open_conditions

    def lasting(self, facts: NodeFacts) -> NodeFacts:
        """What of a node must be recalled after a restart: one that is blind has what it had."""
        if not self.is_blind(facts.node):
            return facts
        listed = {identity.uuid for identity in facts.gpus}
        had = (gpu.identity for gpu in self.at(facts.node) if gpu.identity.uuid not in listed)
        return replace(facts, gpus=(*facts.gpus, *had))

    def own(self, node: str) -> NodeFacts | None:
        """What a node says of itself, without the GPUs that are another's; None if it never said anything."""
        facts, mine = self._facts(node), self._gpus_at[node]
        return None if facts is None else replace(facts, gpus=tuple(gpu for gpu in facts.gpus if gpu.uuid in mine))

    def watch(self, gpu: Gpu) -> None:
        """Have the moment looked at when its readings are stale."""
        if not gpu.watched:  # a reading only puts the moment off, and the agenda finds out by itself
            gpu.watched = True
            self._agenda.watch(Subject(gpu=gpu.identity.uuid), gpu.stale_at)

    def _facts(self, node: str) -> NodeFacts | None:
        known = self._nodes.get(node)
        return known.facts if known is not None else None

    def _forget(self, gpu: Gpu) -> None:
        uuid = gpu.identity.uuid
        del self._gpus[uuid], self._gpus_at[gpu.node][uuid]
        self._work.unsure[uuid] = None
        self._work.untold[gpu.node] = None
