"""The Core with all that goes into the same transaction: spool positions, node facts, numbered orders.

A turn calls ``hear`` and ``told``, then ``write`` for what must be stored, then ``settle`` once it is. After a
failure, ``resume`` makes everything anew from the store. While another controller decides, ``catch_up`` takes in
what that one stores, and ``see`` what nodes say, so that ``begin`` has little left to do.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncConnection

from controller.config import Config
from controller.core.core import Core
from controller.core.fleet.adoption import Adoption
from controller.core.fleet.settings import Settings
from controller.core.fleet.stimuli import Adopted, AnyStimulus, Deaf, Declared, Knocked, NodeReported, Recalled
from controller.core.fleet.views import ReplicaView, View
from controller.deciding import ingest, rulebook
from controller.deciding.dispatch import Dispatch
from controller.deciding.repeats import Repeats
from controller.deciding.verdict import verdict
from controller.several.submission import Submission
from controller.store import form, policies, read, recall
from controller.store.change import Change
from controller.store.records import Addresses, Audit, Position, Write
from controller.store.store import Store
from vocab.catalogue.codes import row
from vocab.events import Event
from vocab.lines import ActionLine, AnyLine, EventLine
from vocab.messages import Batch, NodeFacts, Sequenced

log = logging.getLogger(__name__)

MakeCore = Callable[[Settings], Core]


def real_core(settings: Settings) -> Core:
    """A Core with the catalogue."""
    return Core(settings, row)


class Mind:
    """One life of the Core. Not for two tasks: the conductor alone changes it.

    ``adopted``: the policy in force; ``settings``: what follows from it and the configuration.
    """

    def __init__(self, config: Config, store: Store, dispatch: Dispatch, make_core: MakeCore = real_core) -> None:
        self._make_core = make_core
        self.config = config
        self.adopted: Adoption | None = None
        self.settings = Settings()
        self.shape = rulebook.shaped(config)
        self._deployments = config.deployments
        self._managing = config.managing
        self._store = store
        self._dispatch = dispatch
        self._restored = False  # a restored database was found in this life of the process
        self.core = make_core(self.settings)
        self.epoch = 1
        self.facts: dict[str, NodeFacts] = {}
        self.addresses: dict[str, Addresses] = {}
        self.repeats = Repeats()
        self.seq = 0  # of the last line that the core has
        self.is_warm = False  # the core is what the store's lines add up to, up to ``seq``
        self._turn = -1
        self._started: set[str] = set()  # deployments of which replicas were ever started
        self._unseen: list[AnyStimulus] = []  # what a new core is told first
        self._fresh: list[NodeFacts] = []  # what another controller stored of nodes, not told to the core yet
        self._first: Adoption | None = None  # in force, and not stored yet: nobody has ever started here
        self._clear()

    def _clear(self) -> None:
        self._lines: list[AnyLine] = []
        self._events: list[Event] = []
        self._facts: dict[str, NodeFacts] = {}
        self._positions: dict[str, Position] = {}
        self._addresses: dict[str, Addresses] = {}
        self._audits: list[Audit] = []
        self._adoptions: list[Adoption] = []
        self._touched: set[str] = set()

    async def resume(self, now: float) -> None:
        """Begin to decide, from what the store has. Raises Unreachable."""
        await self.catch_up()
        await self.begin(now)

    async def catch_up(self) -> list[Change]:
        """Take in what is new in the store, without deciding anything; the new lines. Raises Unreachable.

        A core that is not what the store's past adds up to (it ran ahead of a transaction that failed, or the database
        was restored) is made anew, with all that is stored; then nothing counts as new. Raises ConfigError if nobody
        has ever started here and the policy that is configured is wrong.
        """
        async with self._store.reading() as connection:
            at = await read.counts(connection)
            form.check(at.get(form.NAME, 1))
            if self.is_warm and at["turn"] == self._turn:
                return []
            if not self.is_warm or at["seq"] < self.seq or at["pruned"] > self.seq or at["epoch"] != self.epoch:
                await self._read_all(connection, at)
                return []
            news = [change async for change in read.all_changes(connection, self.seq)]
            facts = await read.node_facts(connection, self._turn)
            addresses = await read.node_addresses(connection, self._turn)
            desired = await read.desired_of_nodes(connection, self._turn)
            await self._read_policy(connection)
        self.core.obey(self.settings)
        for change in news:
            self._fold(self.core, change)
        self.seq, self._turn = at["seq"], at["turn"]
        self._learn(facts, addresses)
        self._fresh += facts
        self._dispatch.publish(desired)
        return news

    async def _read_policy(self, connection: AsyncConnection) -> None:
        """Put in force what was adopted last; at the first start of all what is configured."""
        stored = await policies.last_number(connection)
        if stored is not None and (self.adopted is None or self._first is not None or self.adopted.number != stored):
            self._first = None
            self._put_in_force(await policies.last(connection))
        elif stored is None:
            self._first = rulebook.first(self.config)
            self._put_in_force(self._first)

    def _put_in_force(self, adoption: Adoption) -> None:
        if self.adopted is None and (said := rulebook.unheeded(self.config, adoption)) is not None:
            log.warning("policy: %s", said)
        self.adopted, self.settings = adoption, rulebook.in_force(self.config, adoption)
        if self.settings.unadopted:
            log.warning(
                "policy: %d rules are new or changed since it was adopted; as they are now they are in shadow: see"
                " `corral policy diff`",
                len(self.settings.unadopted),
            )

    async def _read_all(self, connection: AsyncConnection, at: dict[str, int]) -> None:
        await self._read_policy(connection)
        core = self._make_core(replace(self.settings, epoch=at["epoch"]))
        self._started = set()
        async for change in recall.changes_that_count(connection):
            self._fold(core, change)
        self.core, self.epoch, self.seq, self._turn = core, at["epoch"], at["seq"], at["turn"]
        self.facts, self.addresses, self._fresh = {}, {}, []
        self._learn(await read.node_facts(connection), await read.node_addresses(connection))
        self._dispatch.load(await read.desired_of_nodes(connection))
        self._clear()
        self._unseen = [self.shape, *self._managing, *(Recalled(facts=facts) for facts in self.facts.values())]
        self._unseen += self._declared()
        self.is_warm = True

    def _fold(self, core: Core, change: Change) -> None:
        core.fold(change.line)
        if isinstance(change.line, ActionLine) and change.line.deployment is not None:
            self._started.add(change.line.deployment)

    def _learn(self, facts: Iterable[NodeFacts], addresses: Iterable[Addresses]) -> None:
        self.facts.update({each.node: each for each in facts})
        self.addresses.update({each.node: each for each in addresses})

    async def begin(self, now: float) -> None:
        """Begin to decide, with all that was caught up with. Raises Unreachable."""
        async with self._store.deciding() as connection:
            await form.mark(connection, self._store.database)
        async with self._store.reading() as connection:
            self.repeats = Repeats(await read.node_positions(connection), await read.highest_positions(connection))
        self._clear()
        self._adoptions += [] if self._first is None else [replace(self._first, at=now)]
        unseen = self._unseen or self._declared()
        self._unseen = []
        self._lines += self.core.recall([*unseen, *(NodeReported(facts=facts) for facts in self._fresh)], now)
        self._fresh = []

    def see(self, submissions: Iterable[Submission], now: float) -> None:
        """Note what nodes and observers say, while another controller decides."""
        told: list[AnyStimulus] = [*self._unseen, *(NodeReported(facts=facts) for facts in self._fresh)]
        self._unseen, self._fresh = [], []
        for each in submissions:
            seen = each.stimuli if each.batch is None else ingest.stimuli(each.batch, [])
            told += [stimulus for stimulus in seen if not isinstance(stimulus, Adopted)]
        for stimulus in told:
            self.core.see(stimulus, now)

    def is_heartbeat(self, batch: Batch) -> bool:
        """Whether there is nothing in it that the store has not, or must know before it is understood."""
        if batch.items or batch.facts is not None or self.is_behind(batch) or self.wants_facts(batch):
            return False
        return batch.replicas is None or self._listed(batch) is None

    def beat(self, batch: Batch, now: float) -> bool:
        """Take a heartbeat in; whether it tells anything new, from which the next ``tick`` concludes."""
        left = [self.core.see(stimulus, now) for stimulus in ingest.stimuli(batch, [])]
        return left[-1]

    def knock(self, node: str, now: float) -> None:
        """A report of a node has arrived, and is heard later, or has to come again: silent it is not."""
        self.core.see(Knocked(node=node), now)

    def was_deaf(self, seconds: float, now: float) -> None:
        """For so long nothing was read of what arrived."""
        self.core.see(Deaf(seconds=seconds), now)

    def keep(self, batch: Batch) -> None:
        """A batch is in the inbox: it is acknowledged, and what the node is counts, before it is thought about."""
        self.repeats.advance(batch)
        self.repeats.settle()
        if batch.facts is not None:
            self.facts[batch.node] = batch.facts

    def _declared(self) -> list[Declared]:
        return [Declared(deployment=each) for each in rulebook.deployments(self._deployments, self._started)]

    def _take(self, stimuli: Iterable[AnyStimulus], now: float) -> list[AnyLine]:
        lines = [line for stimulus in stimuli for line in self.core.take(stimulus, now)]
        self._lines += lines
        return lines

    async def new_records(self, batch: Batch) -> list[Sequenced]:
        """The batch's records that are not stored yet. Raises Unreachable."""
        return await self.repeats.new_records(self._store, batch)

    def wants_facts(self, batch: Batch) -> bool:
        """Whether the node must say what it is before its records can be understood."""
        known = batch.facts or self._facts.get(batch.node) or self.facts.get(batch.node)
        return known is None or known.boot_id != batch.boot_id

    def hear(self, batch: Batch, records: list[Sequenced], now: float) -> list[AnyLine]:
        """Take a batch in, of whose items ``records`` are new."""
        if batch.facts is not None and batch.facts != self.facts.get(batch.node):
            self._facts[batch.node] = batch.facts
        if (listed := self._listed(batch)) is not None:
            self._addresses[batch.node] = listed
        position = self.repeats.advance(batch)
        if position is not None:
            self._positions[batch.node] = position
        self._events += ingest.events(records)
        self._touched.add(batch.node)
        return self._take(ingest.stimuli(batch, records), now)

    def _listed(self, batch: Batch) -> Addresses | None:
        """Where its replicas answer, if that is not what is stored."""
        if batch.replicas is None:
            return None
        listed = Addresses(batch.node, {each.replica: each.url for each in batch.replicas if each.url})
        return listed if listed != self.addresses.get(batch.node, Addresses(batch.node, {})) else None

    def view(self) -> View:
        """The Core's view; a replica of which its node has not spoken yet has the address that is on disk."""
        view = self.core.view()
        if all(each.url for each in view.replicas):
            return view
        return replace(view, replicas=tuple(self._addressed(each) for each in view.replicas))

    def _addressed(self, replica: ReplicaView) -> ReplicaView:
        stored = self.addresses.get(replica.node) if not replica.url else None
        return replica if stored is None else replace(replica, url=stored.urls.get(replica.replica, ""))

    def told(self, stimuli: Sequence[AnyStimulus], audit: Audit | None, now: float) -> list[AnyLine]:
        """Take in what a person ordered or an observer saw."""
        lines = self._take([self._numbered(stimulus, now) for stimulus in stimuli], now)
        if audit is not None:
            self._audits.append(replace(audit, outcome=verdict(lines).text))
        return lines

    def _numbered(self, stimulus: AnyStimulus, now: float) -> AnyStimulus:
        """A policy that is to be adopted becomes the next one, in force from now on."""
        if not isinstance(stimulus, Adopted) or stimulus.adoption is None:
            return stimulus
        before = self.adopted.number if self.adopted is not None else 0
        adopted = replace(stimulus.adoption, number=before + 1, at=now)
        self._put_in_force(adopted)
        self._adoptions.append(adopted)
        words = f"policy {adopted.number} ({adopted.version}) adopted by {adopted.actor}: {adopted.reason}"
        return Adopted(settings=self.settings, words=words)

    def tick(self, now: float) -> None:
        """Take in that time has passed."""
        self._lines += self.core.tick(now)

    def write(self, now: float) -> Write:
        """All that this turn must store."""
        known = {**self.facts, **self._facts} if self._facts else self.facts
        untold = self.core.untold()
        nodes = known if untold is None else sorted((self._touched | set(untold)) & known.keys())
        return Write(
            at=now,
            lines=self._lines,
            events=self._latest_events(),
            facts=[self.core.lasting(facts) for facts in self._facts.values()],
            inventories=self.core.inventories(self._facts),
            received=self.repeats.received(),
            positions=list(self._positions.values()),
            addresses=list(self._addresses.values()),
            desired=self._dispatch.changed(nodes, self.core.desired, self.epoch),
            audits=self._audits,
            adoptions=self._adoptions,
        )

    def _latest_events(self) -> list[Event]:
        """Those that arrived and those that the Core made, each in its last revision."""
        latest: dict[str, Event] = {}
        for event in (*self._events, *(line.event for line in self._lines if isinstance(line, EventLine))):
            if event.id not in latest or event.rev > latest[event.id].rev:
                latest[event.id] = event
        return list(latest.values())

    def settle(self, write: Write) -> None:
        """``write`` is on disk: it counts from now on, and the nodes may be told."""
        self.facts.update(self._facts)
        self.addresses.update(self._addresses)
        self.repeats.settle()
        self._dispatch.publish(write.desired)
        self._first = None
        self._clear()

    def is_behind(self, batch: Batch) -> bool:
        """Whether the node was told more than we know of: our database was restored from a copy, or is new."""
        return batch.generation > self._dispatch.generation(batch.node)

    async def renew(self, batches: Sequence[Batch], now: float) -> None:
        """Begin a new epoch above all earlier ones, so that no node takes our new orders for old ones."""
        for batch in batches:
            self._dispatch.raise_to(batch.node, batch.generation)
        if self._restored:
            return
        self._restored = True
        log.warning("nodes know of orders that the database does not: it was restored or is new; a new epoch begins")
        # seconds since the epoch: above every number that any life of any copy of this database has used
        await self._store.commit(Write(at=now, epoch=max(self.epoch + 1, int(now))))
        await self.resume(now)
