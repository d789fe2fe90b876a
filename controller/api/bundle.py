"""The evidence of an incident or of a GPU, for a vendor: one tar, sent part by part as it is gathered.

What could not be had is named in its README and fails nothing. ``manifest.json`` has the SHA-256 of every other part.
"""

import asyncio
import hashlib
import ssl
import tarfile
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import aiohttp
import msgspec
from aiohttp import web

from controller.api.route import Call, Route, Run, not_found
from controller.deciding.conductor import Conductor
from controller.notify.notice import subject_name
from controller.store import read
from controller.store.change import Change
from controller.store.store import Store
from vocab.errors import ConfigError
from vocab.events import Event, rfc3339
from vocab.lines import ActionLine, AnyLine, ConditionLine, EventLine, HoldLine, IncidentLine, NoteLine, StateLine
from vocab.messages import NodeFacts
from vocab.states import ActionKind
from wire.server import read_token

RECORDING_BYTES = 64 * 2**20  # of one node: minutes of an 8-GPU board
RECORDING_S = 60.0
BUG_REPORT = (
    "if one could be made before {order}, it lies on {node}: evidence/nvidia-bug-report-{order}.log.gz of the root"
    " helper's state folder; kernel log and readings of then: evidence/{order} of the agent's"
)
REPAIRS = (ActionKind.RESET_GPU, ActionKind.REBOOT_NODE)  # before these an agent takes evidence
Part = tuple[str, bytes]


class Bundles:
    """Two routes, one answer. ``token``: where the agents' own token lies, if they ask for one."""

    def __init__(
        self, conductor: Conductor, store: Store, tls: ssl.SSLContext | None = None, token: Path | None = None
    ) -> None:
        self._conductor = conductor
        self._store = store
        self._tls = tls
        self._token = token

    def routes(self) -> list[Route]:
        """The rows."""
        return [
            _row("incidents/{id}/bundle", "incident_bundle", "All evidence of one incident, as a tar", self.incident),
            _row("gpus/{uuid}/bundle", "gpu_bundle", "All evidence of one GPU, as a tar", self.gpu),
        ]

    async def incident(self, call: Call) -> web.StreamResponse:
        """Of an incident."""
        name = call.part("id")
        async with self._store.reading() as connection:
            if not isinstance(await read.standing_line(connection, "incident", name), IncidentLine):
                raise not_found("incident", name, "/api/v1/incidents")
            changes = await read.incident_lines(connection, name)
        return await self._send(call.request, name, changes)

    async def gpu(self, call: Call) -> web.StreamResponse:
        """Of a GPU, and all its incidents."""
        name = call.part("uuid")
        async with self._store.reading() as connection:
            known = {gpu.uuid for facts in await read.node_facts(connection) for gpu in facts.gpus}
            if name not in known:
                raise not_found("gpu", name, "/api/v1/gpus")
            changes = await read.gpu_lines(connection, name)
        return await self._send(call.request, name, changes)

    async def _send(self, request: web.Request, name: str, changes: Sequence[Change]) -> web.StreamResponse:
        headers = {"Content-Type": "application/x-tar", "Content-Disposition": f'attachment; filename="{_file(name)}"'}
        answer = web.StreamResponse(headers=headers)
        await answer.prepare(request)
        sums: dict[str, str] = {}
        at = int(max((change.line.at for change in changes), default=0.0))
        missing: list[str] = []
        async for part, body in self._parts(name, changes, missing):
            sums[part] = hashlib.sha256(body).hexdigest()
            await _write(answer, f"{name}/{part}", body, at)
        readme = _readme(name, sums, missing).encode()
        sums["README.txt"] = hashlib.sha256(readme).hexdigest()
        await _write(answer, f"{name}/README.txt", readme, at)
        manifest = msgspec.json.format(msgspec.json.encode({"of": name, "sha256": sums}))
        await _write(answer, f"{name}/manifest.json", manifest, at)
        await answer.write(bytes(2 * tarfile.BLOCKSIZE))
        await answer.write_eof()
        return answer

    async def _parts(self, name: str, changes: Sequence[Change], missing: list[str]) -> AsyncIterator[Part]:
        lines = [change.line for change in changes]
        events = list({line.event.id: line.event for line in lines if isinstance(line, EventLine)}.values())
        yield "timeline.jsonl", b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        yield "timeline.txt", "".join(f"{rfc3339(line.at)}  {told(line)}\n" for line in lines).encode()
        raw = "".join(f"{proof.line}\n" for event in events for proof in event.evidence if proof.line)
        if raw:
            yield "kernel.log", raw.encode()
        else:
            missing.append("kernel.log: no event of it has a line of the kernel's log")
        readings = [
            {"event": event.id, "code": event.code, "at": proof.at, "readings": proof.readings}
            for event in events
            for proof in event.evidence
            if proof.readings is not None
        ]
        if readings:
            yield "readings.json", msgspec.json.format(msgspec.json.encode(readings, enc_hook=str))
        else:
            missing.append("readings.json: no event of it was told by readings of a GPU")
        async with self._store.reading() as connection:
            facts = {each.node: each for each in await read.node_facts(connection)}
        for node in sorted(_nodes(name, lines, events, facts.values())):
            async for part in self._of_node(node, facts.get(node), lines, missing):
                yield part

    async def _of_node(
        self, node: str, facts: NodeFacts | None, lines: Sequence[AnyLine], missing: list[str]
    ) -> AsyncIterator[Part]:
        """Versions and serials of a node, what its GPUs read now, and what its agent has recorded of late."""
        if facts is None:
            missing.append(f"{node}/node.json: the node has never said what it is")
            return
        yield f"{node}/node.json", msgspec.json.format(msgspec.json.encode(facts))
        view = self._conductor.look()
        gpus = [gpu for each in (view.nodes if view is not None else ()) if each.node == node for gpu in each.gpus]
        yield f"{node}/gpus.json", msgspec.json.format(msgspec.json.encode(gpus))
        try:
            yield f"{node}/recording.jsonl", await self._recording(facts.address)
        except (aiohttp.ClientError, TimeoutError, OSError, ConfigError, ValueError) as error:
            missing.append(f"{node}/recording.jsonl: its agent did not give it: {error or type(error).__name__}")
        orders = [line.id for line in lines if isinstance(line, ActionLine) and line.of in REPAIRS]
        missing += [f"nvidia-bug-report: {BUG_REPORT.format(node=node, order=each)}" for each in dict.fromkeys(orders)]
        if not orders:
            missing.append(f"nvidia-bug-report: none was taken on {node}; run nvidia-bug-report.sh there")

    async def _recording(self, address: str) -> bytes:
        if not address:
            raise ValueError("its address is not known")
        token = read_token(self._token)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=self._tls if self._tls is not None else True)
        url, found = f"{address.rstrip('/')}/api/v1/recording", bytearray()
        async with (
            asyncio.timeout(RECORDING_S),
            aiohttp.ClientSession(connector=connector, headers=headers) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise ValueError(f"it answered {answer.status}")
            async for chunk in answer.content.iter_chunked(2**16):
                found += chunk
                if len(found) > RECORDING_BYTES:
                    raise ValueError(f"it is larger than {RECORDING_BYTES} bytes")
        return bytes(found)


def _row(path: str, name: str, summary: str, run: Run) -> Route:
    return Route(
        method="GET", path=f"/api/v1/{path}", name=name, summary=summary, run=run, stream=True,
        media="application/x-tar", errors=(404,),
    )  # fmt: skip


def _nodes(name: str, lines: Iterable[AnyLine], events: Iterable[Event], facts: Iterable[NodeFacts]) -> set[str]:
    """The nodes that it is about."""
    homes = {gpu.uuid: each.node for each in facts for gpu in each.gpus}
    found = {event.node for event in events} | {line.subject.node for line in lines if line.subject.node}
    return {node for node in {*found, homes.get(name)} if node}


def told(line: AnyLine) -> str:
    """A line for people."""
    about = subject_name(line.subject)
    match line:
        case EventLine(event=event):
            return f"{about}  saw {event.code} x{event.count} ({event.severity}, {event.recovery}): {event.text}"
        case ConditionLine():
            return f"{about}  condition {line.code} {line.state}"
        case IncidentLine():
            return f"{about}  incident {line.id} {line.state}: {line.closed_because or line.code}"
        case StateLine():
            return f"{about}  is {line.to}: {line.why}"
        case HoldLine():
            return f"{about}  hold {line.op} by {line.owner}: {line.reason}"
        case ActionLine():
            return f"{about}  {line.of.value} {line.state.value}, attempt {line.attempt}: {line.why}"
        case NoteLine():
            return f"{about}  {line.code}: {line.text}"
        case _:
            return about


def _readme(name: str, parts: Iterable[str], missing: Sequence[str]) -> str:
    held = "\n".join(f"  {part}" for part in parts)
    lacks = "\n".join(f"  {each}" for each in missing) or "  nothing"
    return (
        f"Evidence of {name}, packed by Corral.\n\nWhat is here (SHA-256 of each in manifest.json):\n{held}\n\n"
        f"What is missing, and why:\n{lacks}\n\n`corral replay NODE/recording.jsonl` plays what a node saw of late.\n"
    )


def _file(name: str) -> str:
    return f"corral-{''.join(letter if letter.isalnum() or letter in '-_' else '-' for letter in name)}.tar"


async def _write(answer: web.StreamResponse, name: str, body: bytes, at: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(body), 0o644, at
    await answer.write(entry.tobuf(tarfile.PAX_FORMAT))
    await answer.write(body)
    await answer.write(bytes(-len(body) % tarfile.BLOCKSIZE))
