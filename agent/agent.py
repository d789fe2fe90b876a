"""One node's agent: all parts made, joined and run together.

At start, in this order: disk (spool and memory), replicas adopted, fences put back, server, sources, link.
At the end: sources and link stop, the last state goes to disk, replicas live on.
"""

import asyncio
import contextlib
import grp
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from agent.api import Api
from agent.config import AgentConfig
from agent.diag.child import PROGRAM
from agent.diag.diag import Diag
from agent.diag.route import route
from agent.door import open_door
from agent.evidence_routes import EvidenceRoutes
from agent.export import Export
from agent.ground import NodeGround
from agent.hands import Hands
from agent.hardware import hardware
from agent.latest import Latest
from agent.loop import Loop
from agent.memory import pack, unpack
from agent.observed.source import ObservedSource
from agent.page import Page
from agent.release import release
from agent.replicas.supervisor import Supervisor
from agent.ring import Ring
from agent.scribe import Scribe
from agent.sources.source import Source
from agent.spool import Spool
from agent.steady import Steady
from agent.units import HelperUnits
from agent.uplink import Uplink, stored
from agent.warden import Warden
from vocab.clock import Clock
from vocab.errors import ConfigError
from wire.backoff import delay_s
from wire.client import Client
from wire.notify import notify
from wire.server import listen, read_token
from wire.tls import Contexts

log = logging.getLogger(__name__)

RENEW_EVERY_S = 3600.0  # what breaks again within it is not cured by that


class Agent:
    """Make it within the running event loop, then ``run``. Raises ConfigError or InputError if it cannot be."""

    def __init__(self, config: AgentConfig, clock: Clock) -> None:
        self._config = config
        self._token = read_token(config.token_file)
        _make(config.state_dir)
        _make(config.run_dir)
        node, program, steady = config.node, release(), Steady(clock)
        with _written("state_dir", config.state_dir):
            self.spool = Spool(config.state_dir / "spool", config.spool_limit_bytes)
        with _written("run_dir", config.run_dir):
            self.hardware = hardware(config, clock)
        boot_id = self.hardware.boot_id
        judge, fences, answered, since = unpack(self.spool.state, node, boot_id, clock.now())
        self._after_seq = judge.position if judge.scene.boot_id == boot_id else None
        self.supervisor = Supervisor(
            config.run_dir,
            clock,
            config.replica_base_port,
            node=node,
            cpu=self.hardware.virtual,
            program=config.replica_program,
            units=None if self.hardware.virtual else HelperUnits(self.hardware.helper()),
            group=_group(config) if config.replica_manager == "systemd" else None,
        )
        self.supervisor.adopt()
        self.latest = Latest(config.level, program, config.address, new_boot=judge.scene.boot_id != boot_id)
        self.latest.remembers_since = since
        self.latest.events_since = clock.now()
        self.export = Export(self.latest, steady.now, judge.open_counts(), dcgm_names=config.dcgm_names)
        self.export.set("corral_agent_build_info", 1, version=program)
        desired_path = config.state_dir / "desired.json"
        desired = stored(desired_path)
        self.warden = Warden(
            node=node, level=config.level, pause_file=config.pause_file, clock=clock, fences=fences, answered=answered,
            replicas=self.supervisor, latest=self.latest, export=self.export, desired=desired,
        )  # fmt: skip
        self.observed = ObservedSource(node, self.latest.listed, self.supervisor.leaders, clock)
        page = Page()
        self.ring = Ring(config.state_dir / "recording", config.recording_limit_bytes, node)
        self.scribe = Scribe(
            self.spool, lambda: pack(judge, fences, self.warden.answered, since), self._wake, self.export.failed
        )
        self.loop = Loop(
            node=node, boot_id=boot_id, clock=clock, steady=steady, judge=judge, warden=self.warden,
            scribe=self.scribe, replicas=self.supervisor, latest=self.latest, page=page, export=self.export,
            ring=self.ring, observed=self.observed.statuses,
            has_looked=lambda: self.observed.has_looked() or not config.observe_replicas,
        )  # fmt: skip
        ground = NodeGround(
            hardware=self.hardware, loop=self.loop, latest=self.latest, supervisor=self.supervisor, warden=self.warden,
            observed=self.observed.statuses,
        )  # fmt: skip
        self.diag = Diag(ground, config.diag_program or PROGRAM, clock)
        self.hands = Hands(
            node=node, level=config.level, state_dir=config.state_dir, pause_file=config.pause_file, clock=clock,
            hardware=self.hardware, loop=self.loop, latest=self.latest, supervisor=self.supervisor, warden=self.warden,
            export=self.export, diag=self.diag, observed=self.observed if config.observe_replicas else None,
        )  # fmt: skip
        self.warden.hands = self.hands
        self.tls = Contexts(config.tls)
        shown = read_token(config.controller_token_file) or self._token
        self._client = Client(config.controller, token=shown, tls=self.tls.client)
        self.uplink = Uplink(
            self._client, self.loop, node, uuid4().hex[:12], self.spool, page, clock, self.export, desired_path, desired
        )
        self.loop.wake_uplink = self._wake
        self.listens = False

    def _wake(self) -> None:
        self.uplink.wake()

    async def run(self, stop: asyncio.Event) -> bool:
        """Work until ``stop`` is set. True: a virtual node has booted meanwhile, so an agent starts anew.

        Raises ConfigError if the address cannot be had.
        """
        config = self._config
        api = Api(
            self.loop, self.latest, self.warden, self.spool, self.uplink, config.controller, self.hardware, self.ring
        )
        app = api.app(self.export, self._token)
        app.router.add_post("/api/v1/diag", route(self.diag))
        EvidenceRoutes(self.hands.evidence).add_to(app)
        runner = await listen(app, config.listen, token=self._token, tls=self.tls.server)
        door = await open_door(api.app(self.export, None), config.run_dir)
        self.listens = True
        try:
            async with self._client, self.tls.renewing():
                return await self._work(stop)
        finally:
            await self.scribe.close()
            self.ring.flush()
            await runner.cleanup()
            if door is not None:
                await door.cleanup()

    async def _work(self, stop: asyncio.Event) -> bool:
        sources: tuple[Source, ...] = self.hardware.sources(self.supervisor.records, self._after_seq)
        if self._config.observe_replicas:
            sources = (*sources, self.observed)
        self.export.watch(sources)
        works = [
            self.loop.run(),
            self.supervisor.run(),
            self.uplink.run(),
            self.hands.run(),
            self.hands.attend_units(),
            self._renew_profiling(),
            *map(self._watch, sources),
        ]
        tasks = [asyncio.ensure_future(work) for work in works]
        log.info("agent runs", extra={"node": self._config.node, "virtual": self.hardware.virtual})
        notify("READY=1")
        ended, booted = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(self.hardware.booted())
        try:
            await asyncio.wait([ended, booted, *tasks], return_when=asyncio.FIRST_COMPLETED)
            notify("STOPPING=1")
        finally:
            again = booted.done() and not ended.done()
            for task in (ended, booted, *tasks):
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        broken = [result for result in results if isinstance(result, Exception)]
        if broken:
            raise broken[0]
        return again

    async def _renew_profiling(self) -> None:
        """Activity counters that read zero beside work have been cured by a new start of their reader: one try."""
        while True:
            await self.loop.profiling_broke.wait()
            log.warning("activity counters are broken: their reader is started anew")
            await self.hardware.renew_profiling()
            await asyncio.sleep(RENEW_EVERY_S)
            self.loop.profiling_broke.clear()

    async def _watch(self, source: Source) -> None:
        """Run one source; one that breaks is started again, for the others must not suffer."""
        failures = 0
        while True:
            try:
                await source.run(self.loop.take)
            except Exception:  # the outermost edge of a source
                log.exception("a source broke", extra={"source": source.name})
                self.export.failed(f"source:{source.name}")
            failures += 1
            await asyncio.sleep(delay_s(failures, source.name, first_s=1.0, most_s=60.0))


def _group(config: AgentConfig) -> int:
    """Of the user that replicas run as."""
    try:
        found = grp.getgrnam(config.replica_group)
    except KeyError as error:
        raise ConfigError(
            f"replica_group: there is no group {config.replica_group!r}: install deploy/systemd/corral.sysusers.conf"
        ) from error
    if found.gr_gid not in {os.getgid(), *os.getgroups()} and os.geteuid() != 0:
        raise ConfigError(f"replica_group: the agent's user is not in {config.replica_group!r}, so no beat can be lent")
    return found.gr_gid


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be made: {error.strerror}; create it for the agent's user") from error


@contextlib.contextmanager
def _written(key: str, folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{key}: {folder} cannot be used: {error.strerror}; it needs free space and the agent's user as owner"
        ) from error
