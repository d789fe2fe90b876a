"""The Core with all that goes into the same transaction: spool positions, node facts, numbered orders.

A turn calls ``hear`` and ``told``, then ``write`` for what must be stored, then ``settle`` once it is. After a
failure, ``rebuild`` makes everything anew from the store.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from controller import ingest, rulebook
from controller.config import Config, DeploymentConfig
from controller.core.core import Core
from controller.core.settings import Settings
from controller.core.stimuli import AnyStimulus, Declared, Deployment, Recalled
from controller.core.views import View
from controller.dispatch import Dispatch
from controller.repeats import Repeats
from controller.store import read
from controller.store.records import Addresses, Audit, Position, Write
from controller.store.store import Store
from controller.verdict import verdict
from vocab.catalogue.codes import row
from vocab.events import Event
from vocab.lines import ActionLine, AnyLine, EventLine
from vocab.messages import Batch, NodeFacts, Sequenced

MakeCore = Callable[[Settings], Core]


def real_core(settings: Settings) -> Core:
    """A Core with the catalogue."""
    return Core(settings, row)


class Mind:
    """One life of the Core. Not for two tasks: the conductor alone changes it. Raises ConfigError."""

    def __init__(self, config: Config, store: Store, dispatch: Dispatch, make_core: MakeCore = real_core) -> None:
        self._make_core = make_core
        self.settings = rulebook.settings(config)
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
        self._clear()

    def _clear(self) -> None:
        self._lines: list[AnyLine] = []
        self._events: list[Event] = []
        self._facts: dict[str, NodeFacts] = {}
        self._positions: dict[str, Position] = {}
        self._addresses: dict[str, Addresses] = {}
        self._audits: list[Audit] = []
        self._touched: set[str] = set()

    async def rebuild(self, now: float) -> int:
        """Read everything back from the store; the ``seq`` of the last change. Raises Unreachable."""
        async with self._store.reading() as connection:
            seq = await read.counter(connection, "seq")
            self.epoch = await read.counter(connection, "epoch")
            self.facts = {facts.node: facts for facts in await read.node_facts(connection)}
            self.addresses = {each.node: each for each in await read.node_addresses(connection)}
            self.repeats = Repeats(await read.node_positions(connection), await read.highest_positions(connection))
            self._dispatch.load(await read.desired_of_nodes(connection))
            self.core = self._make_core(replace(self.settings, epoch=self.epoch))
            started: set[str] = set()
            async for change in read.all_changes(connection):
                self.core.fold(change.line)
                if isinstance(change.line, ActionLine) and change.line.deployment is not None:
                    started.add(change.line.deployment)
        self._clear()
        self._take([self.shape, *self._managing], now)
        self._take([Recalled(facts=facts) for facts in self.facts.values()], now)
        self._take([Declared(deployment=each) for each in self._declared(started)], now)
        return seq

    def _declared(self, started: Iterable[str]) -> list[Deployment]:
        """The deployments of the configuration, and an end for each that is no longer in it."""
        kept = [_deployment(each) for each in self._deployments]
        names = {each.name for each in kept}
        return kept + [Deployment(name=name, replicas=0, min_ready=0) for name in sorted(started) if name not in names]

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
        self._note_addresses(batch)
        position = self.repeats.advance(batch)
        if position is not None:
            self._positions[batch.node] = position
        self._events += ingest.events(records)
        self._touched.add(batch.node)
        return self._take(ingest.stimuli(batch, records), now)

    def _note_addresses(self, batch: Batch) -> None:
        if batch.replicas is None:
            return
        listed = Addresses(batch.node, {each.replica: each.url for each in batch.replicas if each.url})
        if listed != self.addresses.get(batch.node, Addresses(batch.node, {})):
            self._addresses[batch.node] = listed

    def view(self) -> View:
        """The Core's view; a replica of which its node has not spoken yet has the address that is on disk."""
        view = self.core.view()
        urls = {replica: url for node in self.addresses.values() for replica, url in node.urls.items()}
        replicas = (replace(each, url=each.url or urls.get(each.replica, "")) for each in view.replicas)
        return replace(view, replicas=tuple(replicas))

    def told(self, stimuli: Sequence[AnyStimulus], audit: Audit | None, now: float) -> list[AnyLine]:
        """Take in what a person ordered or an observer saw."""
        lines = self._take(stimuli, now)
        if audit is not None:
            self._audits.append(replace(audit, outcome=verdict(lines).text))
        return lines

    def tick(self, now: float) -> None:
        """Take in that time has passed."""
        self._lines += self.core.tick(now)

    def write(self, now: float) -> Write:
        """All that this turn must store."""
        known = {**self.facts, **self._facts}
        nodes = known if self._lines else self._touched & known.keys()
        return Write(
            at=now,
            lines=self._lines,
            events=self._latest_events(),
            facts=list(self._facts.values()),
            received=self.repeats.received(),
            positions=list(self._positions.values()),
            addresses=list(self._addresses.values()),
            desired=self._dispatch.changed(nodes, self.core.desired, self.epoch),
            audits=self._audits,
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
        # seconds since the epoch: above every number that any life of any copy of this database has used
        await self._store.commit(Write(at=now, epoch=max(self.epoch + 1, int(now))))
        await self.rebuild(now)


def _deployment(config: DeploymentConfig) -> Deployment:
    return Deployment(
        name=config.name,
        replicas=config.replicas,
        gpus_per_replica=config.gpus_per_replica,
        min_ready=config.floor,
        model=config.model,
        engine=config.engine,
        options=config.options,
        managed_by=config.managed_by,
        prestop_s=config.prestop_s,
        drain_s=config.drain_s,
        kill_s=config.kill_s,
    )
