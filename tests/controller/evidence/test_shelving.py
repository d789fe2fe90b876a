"""A bundle is written at each quarantine by itself: with the agent's evidence, once, and anew when a node is back."""

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from controller.deciding.mind import real_core
from controller.evidence.shelf import Bundle, Shelf
from controller.notify.notice import bundle_of, notice_of
from tests.controller.house import House, event, house, uuid
from tests.controller.node import Node
from vocab.events import Recovery
from vocab.lines import ActionLine

REPORT = "nvidia-bug-report.log.gz"


class Agent:
    """What an agent keeps; ``taken``: the orders for which it was asked to take evidence."""

    def __init__(self) -> None:
        self.url = ""
        self.taken: list[str] = []
        self.shown: set[str | None] = set()
        self.files = {"kernel.log": b"NVRM: Xid\n", REPORT: b"report", "../../etc/passwd": b"not ours"}
        self.status = 200

    async def recording(self, request: web.Request) -> web.Response:
        self.shown.add(request.headers.get("Authorization"))
        return web.Response(body=b'{"obs":"end"}\n', status=self.status)

    async def listed(self, request: web.Request) -> web.Response:
        order = request.match_info["order"]
        if request.method == "POST":
            self.taken.append(order)
        if order not in self.taken:
            raise web.HTTPNotFound
        files = [{"name": name, "bytes": len(body)} for name, body in self.files.items()]
        return web.json_response({"order": order, "files": files}, status=self.status)

    async def piece(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]], status=self.status)


@asynccontextmanager
async def agent() -> AsyncIterator[Agent]:
    made, app = Agent(), web.Application()
    app.router.add_get("/api/v1/recording", made.recording)
    app.router.add_route("*", "/api/v1/evidence/{order}", made.listed)
    app.router.add_get("/api/v1/evidence/{order}/{name}", made.piece)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port, *_ = runner.addresses[0]
    made.url = f"http://{host}:{port}"
    try:
        yield made
    finally:
        await runner.cleanup()


async def joined(home: House, address: str) -> Node:
    """A node of this agent, once it is known from where bundles are written."""
    from controller.store.tables import counters

    node = Node(home)
    node.facts = msgspec.structs.replace(node.facts, address=address)
    await node.send()
    await node.settle()
    async with asyncio.timeout(60):
        while True:
            async with home.inside.store.reading() as connection:
                if "bundles" in {row.name for row in await connection.execute(counters.select())}:
                    return node
            await asyncio.sleep(0.02)


async def quarantined(node: Node, number: int = 1, gpu: int = 0) -> None:
    seen = event(number, gpu=gpu, code="remap_failed")
    await node.send(msgspec.structs.replace(seen, recovery=Recovery.CONTACT_SUPPORT))
    await node.settle()


async def written(home: House, count: int = 1, *, tries: int = 1) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        while True:
            found: list[dict[str, Any]] = await home.get("bundles")
            if len(found) >= count and found[0]["tries"] >= tries:
                return found
            await asyncio.sleep(0.05)


async def unpacked(home: House, name: str) -> dict[str, bytes]:
    raw = await home.fetch("GET", f"/api/v1/bundles/{name}")
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {each.name.partition("/")[2]: tar.extractfile(each).read() for each in tar}  # type: ignore[union-attr]


async def test_a_quarantine_writes_a_bundle_with_what_the_agent_took_for_it(tmp_path: Path) -> None:
    token = tmp_path / "agents.token"
    token.write_text("agents' own\n")
    token.chmod(0o600)
    async with agent() as made, house(tmp_path / "c", make_core=real_core, agents_token_file=str(token)) as home:
        node = await joined(home, made.url)
        await quarantined(node)
        (bundle,) = await written(home)
        (order,) = made.taken
        parts = await unpacked(home, bundle["id"])
        assert bundle["id"] == f"b-{order.removeprefix('a-')}"
        assert (bundle["subject"], bundle["waits_for"], bundle["incident"]) == (uuid(0), [], bundle["of"])
        assert parts[f"n1/evidence/{order}/{REPORT}"] == b"report"
        assert b"quarantine" in parts["timeline.txt"]
        assert not [name for name in parts if "passwd" in name]
        assert made.shown == {"Bearer agents' own"}
        actions = [line for line in await _lines(home) if isinstance(line, ActionLine) and bundle_of(line)]
        assert {notice_of(1, line).bundle for line in actions} == {bundle["id"]}  # type: ignore[union-attr]


async def _lines(home: House) -> list[Any]:
    from controller.store import read

    async with home.inside.store.reading() as connection:
        return [change.line for change in await read.changes_after(connection, 0, limit=1000)]


async def test_what_a_node_did_not_give_is_named_and_had_once_it_is_back(tmp_path: Path) -> None:
    async with agent() as made, house(tmp_path, make_core=real_core) as home:
        made.status = 500
        node = await joined(home, made.url)
        await quarantined(node)
        (bundle,) = await written(home)
        assert bundle["waits_for"] == ["n1"]
        readme = (await unpacked(home, bundle["id"]))["README.txt"].decode()
        assert "n1/recording.jsonl: its agent did not give it: it answered 500" in readme
        made.status = 200
        shelf = home.inside.shelf
        [found] = shelf.listed()
        path = tmp_path / "bundles" / f"{found.id}.json"  # as if the wait were over
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(found, packed_at=0.0)))
        (again,) = await written(home, tries=2)
        assert (again["waits_for"], again["tries"]) == ([], 2)
        assert f"n1/evidence/{made.taken[0]}/{REPORT}" in await unpacked(home, bundle["id"])


async def test_what_was_written_failed_and_is_kept_is_counted(tmp_path: Path) -> None:
    (tmp_path / "bundles").write_text("in the way of the folder")
    async with agent() as made, house(tmp_path, make_core=real_core) as home:
        node = await joined(home, made.url)
        await quarantined(node)
        text = ""
        async with asyncio.timeout(60):
            while 'corral_bundles_total{outcome="failed"} 1.0' not in text:
                await asyncio.sleep(0.05)
                text = (await home.raw("GET", "/metrics"))[1]
    (tmp_path / "bundles").unlink()
    async with agent() as made, house(tmp_path, make_core=real_core) as home:
        (bundle,) = await written(home)
        async with asyncio.timeout(60):
            while f"corral_bundle_bytes {float(bundle['bytes'])}" not in text:
                await asyncio.sleep(0.05)
                text = (await home.raw("GET", "/metrics"))[1]
        assert 'corral_bundles_total{outcome="written"} 1.0' in text
        assert "corral_bundle_limit_bytes 2.147483648e+09" in text


async def test_a_controller_that_starts_anew_writes_what_it_had_not(tmp_path: Path) -> None:
    async with agent() as made, house(tmp_path, make_core=real_core) as home:
        node = await joined(home, made.url)
        await quarantined(node)
        await written(home)
    async with house(tmp_path, make_core=real_core) as home:
        assert len(await written(home)) == 1
        assert len(made.taken) == 1


async def test_of_what_does_not_exist_there_is_none(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        assert await home.get("bundles") == []
        for name in ("b-none", "..%2fcontroller.db", "b-%2e%2e"):
            status, _, _ = await home.raw("GET", f"/api/v1/bundles/{name}")
            assert status == 404, name


def made(shelf: Shelf, name: str, at: float, size: int) -> None:
    part = shelf.begin(name)
    part.write_bytes(bytes(size))
    shelf.finish(part, Bundle(id=name, of="i-1", incident="i-1", subject="GPU-1", at=at, packed_at=at, bytes=size))


def test_the_oldest_go_when_they_are_too_many_or_too_large(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, most=3, most_bytes=1000)
    for number in range(5):
        made(shelf, f"b-{number}", float(number), 10)
    assert [each.id for each in shelf.listed()] == ["b-4", "b-3", "b-2"]
    made(shelf, "b-9", 9.0, 2000)
    assert [each.id for each in shelf.listed()] == ["b-9"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b-9.json", "b-9.tar"]


def test_a_tar_that_is_not_whole_is_not_there(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.begin("b-1").write_bytes(b"half")
    assert (shelf.listed(), shelf.find("b-1")) == ([], None)
    made(shelf, "b-2", 1.0, 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b-2.json", "b-2.tar"]
