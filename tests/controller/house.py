"""A running controller for a test: its real server on a free port, its real SQLite file in a temporary folder."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from controller.app import Controller, controller
from controller.config import Config
from controller.deciding.mind import MakeCore
from controller.store.dialects import Database, Sqlite
from controller.store.store import Store
from tests.controller.plain_core import make_plain
from vocab.clock import Clock, SystemClock
from vocab.events import Event, Evidence, Recovery, Scope, Severity, Source, event_id, rfc3339
from vocab.messages import Batch, EventItem, NodeFacts, Sequenced
from vocab.observations import GpuIdentity
from wire.client import Client
from wire.server import read_token

Keys = dict[str, Any]  # of a controller's configuration
START_S = 60.0  # of a loaded machine
NODE = "n1"
BOOT = "boot-1"
RAW = "6,1042,81723004519,-;NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus."


def uuid(index: int) -> str:
    return f"GPU-{index:08x}"


def facts(node: str = NODE, boot_id: str = BOOT, gpus: int = 2) -> NodeFacts:
    return NodeFacts(
        node=node,
        boot_id=boot_id,
        virtual=True,
        driver="570.1",
        address="http://127.0.0.1:9",
        gpus=tuple(
            GpuIdentity(uuid=uuid(index), index=index, pci=f"0000:{index + 16:02x}:00") for index in range(gpus)
        ),
    )


def event(number: int = 1, *, rev: int = 1, gpu: int = 0, node: str = NODE, **more: Any) -> Event:
    at = rfc3339(1_796_000_000.0 + number)
    return Event(
        id=event_id(BOOT, uuid(gpu), "xid:79", "", (number,)),
        rev=rev,
        at=at,
        node=node,
        boot_id=BOOT,
        gpu=uuid(gpu),
        **{"code": "xid:79", "severity": Severity.CRITICAL, "text": f"fault {number}", **more},
        recovery=Recovery.REBOOT_NODE,
        scope=Scope.GPU,
        source=Source.KERNEL,
        first_at=at,
        last_at=at,
        evidence=(Evidence(source="kmsg", line=RAW),),
    )


def batch(*events: Event, first: int = 1, session: str = "s1", **more: Any) -> Batch:
    """A report of ``NODE`` with its facts and these events at the positions from ``first``."""
    items = tuple(Sequenced(position, EventItem(each)) for position, each in zip(itertools.count(first), events))
    return Batch(
        **{"node": NODE, "boot_id": BOOT, "at": 0.0, "session": session, "facts": facts(), **more}, items=items
    )


class House(Client):
    """A client of the controller that runs, and the controller."""

    def __init__(self, base: str, inside: Controller, token: str | None = None) -> None:
        super().__init__(base, token=token)
        self.inside = inside

    async def get(self, path: str, **query: Any) -> Any:
        return await self.call("GET", f"/api/v1/{path}", Any, **query)

    async def post(self, path: str, body: Any) -> Any:
        return await self.call("POST", f"/api/v1/{path}", Any, body)

    async def raw(self, method: str, path: str, **more: Any) -> tuple[int, str, "aiohttp.typedefs.LooseHeaders"]:
        async with self.session.request(method, self.base + path, **more) as response:
            return response.status, await response.text(), response.headers


_new: list[bytes] = []  # an SQLite file with all tables and no row


async def lay_out(place: Database) -> None:
    """Give a controller that is new its file whole: the steps that lead there are slow and have their own tests."""
    if not isinstance(place, Sqlite) or place.path.exists():
        return
    place.path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    if _new:
        place.path.write_bytes(_new[0])
        return
    await (await Store.open(place)).close()
    _new.append(place.path.read_bytes())


@asynccontextmanager
async def house(
    folder: Path, *, clock: Clock | None = None, make_core: MakeCore = make_plain, **settings: Any
) -> AsyncIterator[House]:
    """A controller that is ready; all its work is ended when the block ends."""
    config = Config(listen="127.0.0.1:0", state_dir=str(folder), **settings)
    await lay_out(config.place)
    async with controller(config, clock or SystemClock(), make_core) as made, made.running() as runner:
        host, port, *_ = runner.addresses[0]
        token = read_token(config.token_path)
        async with House(f"http://{host}:{port}", made, token) as client:
            async with asyncio.timeout(START_S):
                while not made.conductor.ready[0]:
                    await asyncio.sleep(0.005)
            yield client
