"""The cheap side of the load: a connection that costs little, and the batches of nodes that are not there."""

import asyncio
import json
import time

import msgspec

from vocab.catalogue.codes import row
from vocab.events import Event, Source, event_id, rfc3339
from vocab.messages import Batch, EventItem, GpuStatus, NodeFacts, Sequenced
from vocab.observations import GpuIdentity
from vocab.readings import Readings
from vocab.states import Level


class Caller:
    """One kept HTTP/1.1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Caller":
        """Connect. Raises OSError."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def close(self) -> None:
        """Whatever is under way on it."""
        self._writer.close()

    async def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The answer's body. Raises RuntimeError if it is no 200."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        if headers.get("transfer-encoding") == "chunked":
            answer = await self._chunks()
        else:
            answer = await self._reader.readexactly(int(headers.get("content-length", 0)))
        if lines[0].split()[1] != "200":
            raise RuntimeError(f"{method} {path}: {lines[0]}: {answer[:300]!r}")
        return answer

    async def _chunks(self) -> bytes:
        found = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            found += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
        return found


def uuid(node: str, gpu: int) -> str:
    """The name of a GPU."""
    return f"GPU-{node}-{gpu}"


def first(node: str, gpus: int) -> bytes:
    """What a node says when it starts."""
    identities = tuple(
        GpuIdentity(
            uuid=uuid(node, n), index=n, pci=f"0000:{n:02x}:00", serial=f"{node}-{n}", name="NVIDIA H100 80GB HBM3"
        )
        for n in range(gpus)
    )
    facts = NodeFacts(
        node=node, boot_id=_boot(node), level=Level.REPAIR, version="0.1.0", driver="580.95.05", gpus=identities
    )
    statuses = tuple(_status(node, n) for n in range(gpus))
    return _body(
        Batch(node=node, boot_id=_boot(node), at=time.time(), session="s", facts=facts, gpus=statuses, replicas=())
    )


def batch(node: str, *, gpu: int, readings: int = 1, events: tuple[str, int, int] | None = None) -> bytes:
    """A heartbeat with so many readings from ``gpu`` on; ``events``: a code, how many, the position of the last."""
    items: tuple[Sequenced, ...] = ()
    if events is not None:
        code, count, last = events
        items = tuple(Sequenced(n, EventItem(_event(node, gpu, code, n))) for n in range(last - count + 1, last + 1))
    statuses = tuple(_status(node, (gpu + n) % 8) for n in range(readings))
    return _body(Batch(node=node, boot_id=_boot(node), at=time.time(), session="s", items=items, gpus=statuses))


def joined(fleet: bytes) -> int:
    """How many nodes are live in an answer of ``/api/v1/fleet``."""
    return sum(node["state"] == "live" for node in json.loads(fleet)["nodes"])


def _body(batch: Batch) -> bytes:
    return msgspec.json.encode(batch)


def _boot(node: str) -> str:
    return f"boot-{node}"


def _status(node: str, gpu: int) -> GpuStatus:
    readings = Readings(temperature_c=41.0, power_w=320.0, utilization_ratio=0.9, sm_active_ratio=0.4)
    return GpuStatus(gpu=uuid(node, gpu), at=time.time(), readings=readings)


def _event(node: str, gpu: int, code: str, number: int) -> Event:
    known, stamp = row(code), rfc3339(time.time())
    return Event(
        id=event_id(_boot(node), uuid(node, gpu), code, "", (number,)), at=stamp, node=node, boot_id=_boot(node),
        gpu=uuid(node, gpu), code=code, severity=known.severity, recovery=known.recovery, scope=known.scope,
        source=Source.KERNEL, kernel_s=float(number), first_at=stamp, last_at=stamp,
        text=f"NVRM: Xid (PCI:0000:0{gpu}:00): {code.removeprefix('xid:')}, pid=1, name=python",
    )  # fmt: skip
