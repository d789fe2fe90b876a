"""The source of observed replicas: looks every few seconds who is on the node's GPUs, and asks servers how they are.

The process table is read beside the loop, for a process in trouble can block its reader; a look that does not come
back is reported and not repeated until it does.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

import msgspec

from agent.observed.finder import Finder, Found, Server
from agent.observed.processes import Processes
from agent.observed.sighting import Sighting, name_of
from agent.observed.talk import Talk, Word
from agent.observed.work import Work, by_owner
from agent.sources.source import Emit
from vocab.clock import Clock
from vocab.messages import ReplicaStatus
from vocab.observations import SourceState

log = logging.getLogger(__name__)

EVERY_S = 5.0  # a stall is told from 30 s without a step on; an engine's /metrics costs it some milliseconds
FIRST_S = 0.5  # between the first looks: all GPUs are read for the first time within a moment
LOOKS = 2  # the first may come before the last GPU was read
SETTLES_S = 15.0  # where no driver tells its processes nothing is waited for longer
HANGS_S = 10.0  # a look takes milliseconds
MAY_NOT = (
    "NO_PERMISSION: on which ports these listen may not be read, and their command lines do not say:"
    " name the port there (--port), or give the agent CAP_SYS_PTRACE"
)
STUCK = "HUNG: a process blocks whoever reads of it in /proc"

Listed = Callable[[], Mapping[str, Collection[int]]]  # pids by GPU, of the GPUs that told them


class ObservedSource:
    """Emits ReplicaSeen of each observed replica, and SourceState of the source ``observed``.

    ``listed`` are the processes that the driver lists, ``ours`` the processes that Corral started.
    """

    name = "observed"

    def __init__(
        self,
        node: str,
        listed: Listed,
        ours: Callable[[], frozenset[int]],
        clock: Clock,
        processes: Processes | None = None,
        *,
        every_s: float = EVERY_S,
        hangs_s: float = HANGS_S,
    ) -> None:
        self._node = node
        self._listed = listed
        self._ours = ours
        self._clock = clock
        self._finder = Finder(processes or Processes())
        self._every_s = every_s
        self._hangs_s = hangs_s
        self._sightings: dict[str, Sighting] = {}
        self._works: dict[str, Work] = {}
        self._said: SourceState | None = None
        self._look: asyncio.Future[Found] | None = None  # one at a time
        self._looks = 0
        self._began = clock.monotonic()

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        """Every observed replica, as the controller is told."""
        servers = (sighting.status() for _, sighting in sorted(self._sightings.items()))
        return (*servers, *(work.status(self._node) for _, work in sorted(self._works.items())))

    def has_looked(self) -> bool:
        """Whether its list can be taken for whole: what is missing on it has ended, and is not just not found yet."""
        return self._looks >= LOOKS or self._clock.monotonic() - self._began >= SETTLES_S

    async def run(self, emit: Emit) -> None:
        """Observe until cancelled."""
        async with Talk() as talk:
            while True:
                await self.observe(emit, talk)
                await asyncio.sleep(self._every_s if self.has_looked() else min(FIRST_S, self._every_s))

    async def observe(self, emit: Emit, talk: Talk) -> None:
        """One look: who is there, how they are, who has gone. Without a GPU that tells its processes, nothing."""
        if not self._candidates():
            return
        found = await self._find()
        if found is None:
            self._say(emit, "degraded", STUCK)
            return
        servers = found.servers
        hidden = sorted({str(server.owner) for server in servers if server.urls is None})
        self._say(emit, "degraded" if hidden else "up", MAY_NOT if hidden else None, tuple(hidden))
        gone = self._follow(servers)
        await asyncio.gather(*(_ask(sighting, talk) for sighting in self._sightings.values()))
        for sighting in self._sightings.values():
            if sighting.word.health == "refused":
                self._finder.doubt(sighting.server.process)
        at = self._clock.now()
        for sighting in gone:
            log.info("an observed replica has ended", extra={"replica": sighting.name})
            emit(sighting.gone(at))
        for sighting in self._sightings.values():
            emit(sighting.seen(at))
        self._tell_works(found, emit, at)
        self._looks += 1

    def _tell_works(self, found: Found, emit: Emit, at: float) -> None:
        """Take the rest in: also a server that cannot be followed holds its GPUs."""
        followed = {sighting.server.process for sighting in self._sightings.values()}
        hidden = [_unasked(server) for server in found.servers if server.process not in followed]
        before, self._works = self._works, by_owner((*found.works, *hidden), self._node)
        for name, work in before.items():
            if name not in self._works:
                emit(work.seen(self._node, at, "stopped"))
        for name, work in self._works.items():
            if name not in before:
                log.info("others work on GPUs", extra={"replica": name, "owner": str(work.owner)})
            emit(work.seen(self._node, at))

    def _follow(self, servers: tuple[Server, ...]) -> list[Sighting]:
        """Take the servers of this look in; those that have ended."""
        before, self._sightings = self._sightings, {}
        for server in servers:
            known = next((s for s in before.values() if s.server.process == server.process), None)
            name = known.name if known is not None else name_of(server, self._node)
            if name is None or name in self._sightings or (known is None and server.urls is None):
                continue
            if known is None:
                told = {"replica": name, "owner": str(server.owner), "gpus": len(server.gpus)}
                log.info("a replica is observed", extra=told)
                known = Sighting(name, self._node, server)
            if server.urls is not None:
                known.again(server)
            self._sightings[name] = known
        return [sighting for name, sighting in before.items() if name not in self._sightings]

    async def _find(self) -> Found | None:
        """Who is on the node's GPUs; None if the process table does not answer in time."""
        if self._look is None:
            self._look = _beside(self._finder, self._candidates(), self._ours(), self._clock.monotonic())
        try:
            async with asyncio.timeout(self._hangs_s):
                return await asyncio.shield(self._look)
        except TimeoutError:
            return None
        finally:
            if self._look.done():
                self._look = None

    def _candidates(self) -> dict[str, Collection[int]]:
        """What the driver lists; a GPU that tells nothing now keeps what was seen on it."""
        told = self._listed()
        listed: dict[str, Collection[int]] = dict(told)
        for sighting in self._sightings.values():
            for gpu in sighting.server.gpus:
                listed[gpu] = {*listed.get(gpu, ()), sighting.server.process.pid}
        for work in self._works.values():
            for gpu in work.gpus:
                if gpu not in told:
                    listed[gpu] = {*listed.get(gpu, ()), *work.pids}
        return listed

    def _say(self, emit: Emit, state: str, error: str | None, unsupported: tuple[str, ...] = ()) -> None:
        """Report the source's state if it is news."""
        said = SourceState(at=0.0, node=self._node, source=self.name, state=state, error=error, unsupported=unsupported)
        if said != self._said:
            self._said = said
            emit(msgspec.structs.replace(said, at=self._clock.now()))


async def _ask(sighting: Sighting, talk: Talk) -> None:
    """One round of questions to one engine."""
    urls = sighting.server.urls or ()
    if sighting.url is None or (urls and sighting.url not in urls):
        for url in urls:
            model = await talk.model(url)
            if model is not None:
                sighting.named(url, model)
                break
    if sighting.url is None:
        return
    if not urls:
        sighting.heard(Word())
        return
    sighting.heard(await talk.word(sighting.url, sighting.server.engine))


def _unasked(server: Server) -> Work:
    """A server that is known by its processes alone."""
    return Work(owner=server.owner, session=server.process.session, gpus=server.gpus, pids=server.pids)


def _beside(
    finder: Finder, listed: Mapping[str, Collection[int]], ours: frozenset[int], now: float
) -> asyncio.Future[Found]:
    """Find in a thread that nobody waits for at the end: one that is blocked must not keep the agent alive."""
    done: Future[Found] = Future()

    def work() -> None:
        try:
            done.set_result(finder.find(listed, ours, now))
        except Exception as error:  # noqa: BLE001  # the edge of the thread: raised where it is awaited
            done.set_exception(error)

    threading.Thread(target=work, name="observed", daemon=True).start()
    return asyncio.wrap_future(done)
