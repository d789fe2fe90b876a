"""On the node alone: explain, events and top by the agent's own socket, also where no controller answers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from agent.door import bound, open_door
from corral.__main__ import cli
from corral.local import hint
from vocab.errors import Unreachable
from vocab.events import Event, Evidence, Recovery, Scope, Severity, Source

GPU, LINE = "GPU-11111111-2222", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
EVENT = Event(
    id="e1", at="2026-11-30T05:00:00.000000Z", node="n1", gpu=GPU, code="xid:79", severity=Severity.CRITICAL,
    recovery=Recovery.REBOOT_NODE, scope=Scope.GPU, source=Source.KERNEL, first_at="2026-11-30T05:00:00.000000Z",
    last_at="2026-11-30T05:00:00.000000Z", text="GPU has fallen off the bus.",
    evidence=(Evidence(source="kmsg", line=LINE),),
)  # fmt: skip
READINGS = {"utilization_ratio": 1.0, "sm_active_ratio": 0.03, "dram_active_ratio": 0.02, "power_w": 300.0}
NODE = {
    "node": "n1",
    "paused": False,
    "gpus": [
        {"gpu": GPU, "index": 0, "fenced": True, "sample": None},
        {"gpu": "GPU-33333333-4444", "index": 1, "fenced": False, "sample": {"readings": READINGS}},
    ],
    "replicas": [{"replica": "chat-1", "members": [{"node": "n1", "gpu": GPU}], "phase": "ready", "running": 2}],
    "sources": [{"source": "dcgm", "state": "down", "since": 0.0}],
    "controller": {"url": "http://c:7400", "up": False},
    "events_since": 1_796_000_000.0,
}


async def run(folder: Path, *words: str) -> Result:
    """The command, on a node whose controller is not there."""
    env = {"CORRAL_URL": "http://127.0.0.1:9", "CORRAL_AGENT_SOCKET": str(folder / "agent.sock"), "COLUMNS": "80"}
    return await asyncio.to_thread(CliRunner().invoke, cli, words, env=env, standalone_mode=False)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Path]:
    """The folder of an agent's socket."""
    app = web.Application()
    app.router.add_get("/api/v1/node", _node)
    app.router.add_get("/api/v1/events", _events)
    runner = await open_door(app, tmp_path)
    assert runner is not None
    yield tmp_path
    await runner.cleanup()


async def _node(_: web.Request) -> web.Response:
    return web.json_response(NODE)


async def _events(_: web.Request) -> web.Response:
    return web.Response(body=msgspec.json.encode(EVENT) + b"\n")


async def test_explain_tells_what_the_agent_saw_and_how_the_gpu_stands(node: Path) -> None:
    text = " ".join((await run(node, "explain", "0", "--local")).output.split())
    assert LINE in text
    assert "fenced by this agent" in text
    assert "chat-1: ready" in text
    assert "http://c:7400 does not answer" in text


async def test_explain_without_a_controller_asks_the_node_and_says_so(node: Path) -> None:
    result = await run(node, "explain", "0", "--json")
    assert '"code":"xid:79"' in result.stdout
    assert "This node's agent says" in result.stderr


async def test_events_of_the_node(node: Path) -> None:
    result = await run(node, "events", "--local", "--json", "--gpu", "0")
    assert msgspec.json.decode(result.stdout, type=Event) == EVENT


async def test_since_when_the_agent_remembers_is_told_and_where_the_rest_is_asked(node: Path) -> None:
    quiet = " ".join((await run(node, "explain", "1", "--local")).output.split())
    assert "It has seen nothing of this GPU." in quiet
    assert "Nothing has happened" not in quiet
    for text in (quiet, " ".join((await run(node, "events", "--local", "--gpu", "1")).output.split())):
        assert "remembers what it has seen since 2026-11-30 00:53:20Z" in text
        assert "http://c:7400" in text


async def test_top_shows_what_utilization_hides_within_80_columns(node: Path) -> None:
    text = (await run(node, "top", "--local", "--once")).output
    assert "launch-bound" in text
    assert "fenced" in text
    assert "dcgm down" in text
    assert max(map(len, text.splitlines())) <= 80


async def test_without_controller_and_agent_it_is_unreachable(tmp_path: Path) -> None:
    for words in (("explain", "0"), ("events", "--local"), ("top", "--once")):
        assert isinstance((await run(tmp_path, *words)).exception, Unreachable)


async def test_an_agent_that_has_stopped_is_told_from_one_that_does_not_let_us_in(tmp_path: Path) -> None:
    bound(tmp_path / "agent.sock").close()
    said = str((await run(tmp_path, "explain", "0", "--local")).exception)
    assert "has stopped and left its socket behind; start it with `systemctl start corral-agent`" in said
    assert "member of the agent" not in said
    (tmp_path / "agent.sock").unlink()
    assert "no agent runs here" in str((await run(tmp_path, "top", "--once", "--local")).exception)


def test_who_may_not_open_the_socket_is_told_who_may() -> None:
    assert hint(PermissionError()) == "run as root or as a member of the agent's group"
