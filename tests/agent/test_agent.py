"""The whole agent over a virtual node, within this process, and as a process of its own."""

import asyncio
import contextlib
import functools
import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from agent.agent import Agent
from agent.config import AgentConfig
from agent.spool import Spool
from tests.fakes.controller import Controller
from vocab.clock import SystemClock
from vocab.errors import InputError, Refused
from vocab.events import Event
from vocab.messages import Desired, EventItem, FenceItem, HoldSpec
from vocab.states import Level
from wire.client import Client

ROOT = Path(__file__).parents[2]
FAKE_DIAG = (sys.executable, str(ROOT / "tests" / "fakes" / "diag.py"))  # PyTorch alone takes seconds to start


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def configured(folder, controller="http://127.0.0.1:9", **changes):
    usual = {
        "node": "n1", "controller": controller, "listen": f"127.0.0.1:{free_port()}", "state_dir": folder / "state",
        "run_dir": folder / "run", "level": Level.REPAIR, "virtual": "8xH100", "pause_file": folder / "PAUSE",
        "diag_program": FAKE_DIAG,
    }  # fmt: skip
    return AgentConfig(**(usual | changes))


class Running:
    def __init__(self, config):
        self.config, self.agent, self.stop = config, Agent(config, SystemClock()), asyncio.Event()

    async def get(self, path):
        async with Client(self.config.address) as client:
            return await client.call("GET", path, object)

    async def events(self):
        async with Client(self.config.address) as client, client.session.get(f"{client.base}/api/v1/events") as answer:
            return [msgspec.json.decode(line, type=Event) for line in (await answer.read()).splitlines()]

    async def metrics(self):
        async with Client(self.config.address) as client, client.session.get(f"{client.base}/metrics") as answer:
            return (await answer.read()).decode()

    async def drill(self, **fault):
        async with Client(self.config.address) as client:
            return await client.call("POST", "/api/v1/drills", object, fault)

    async def until(self, holds, within_s=60.0):
        async with asyncio.timeout(within_s):
            while not holds():
                await asyncio.sleep(0.01)

    async def ready(self):
        await self.until(lambda: self.agent.latest.ready()[0] and len(self.agent.latest.proven) == 8)
        return self


@asynccontextmanager
async def running(config):
    made = Running(config)
    task = asyncio.ensure_future(made.agent.run(made.stop))
    try:
        await made.until(lambda: made.agent.listens or task.done())
        yield made
    finally:
        made.stop.set()
        await asyncio.wait_for(task, 10.0)


async def test_a_drill_is_fenced_told_to_the_controller_and_explained(tmp_path):
    async with Controller() as controller, running(configured(tmp_path, controller.url)) as node:
        await node.ready()
        gpu = node.agent.latest.seen.gpus[0].uuid
        await node.drill(kind="xid", code=79, gpu=0)
        await node.until(lambda: gpu in node.agent.supervisor.fenced)
        await controller.until(lambda c: len(c.items) >= 3)
        kinds = [type(controller.items[position]) for position in sorted(controller.items)]
        assert kinds[:2] == [FenceItem, EventItem]
        root, lost = [i.event for i in controller.items.values() if isinstance(i, EventItem)][:2]
        assert (root.code, lost.code, lost.cause) == ("xid:79", "gpu_lost", root.id)
        assert "fallen off the bus" in root.evidence[0].line
        shown = await node.get("/api/v1/node")
        assert shown["fences"] == [gpu]
        assert f'corral_gpu_xid_errors_total{{gpu="{gpu}",xid="79"}} 1.0' in await node.metrics()


async def test_the_fence_does_not_need_the_controller_and_the_rest_follows_once_it_is_back(tmp_path):
    controller = Controller()
    await controller.start("127.0.0.1", 0)
    await controller.stop()
    async with running(configured(tmp_path, controller.url)) as node:
        await node.ready()
        await node.drill(kind="xid", code=79, gpu=3)
        await node.until(lambda: node.agent.supervisor.fenced)
        await controller.restart()
        await controller.until(lambda c: {"xid:79", "gpu_lost"} <= _codes(c), 15.0)
        assert sorted(controller.items) == list(range(1, len(controller.items) + 1))
    await controller.stop()


def _codes(controller):
    return {item.event.code for item in controller.items.values() if isinstance(item, EventItem)}


async def test_an_agent_that_starts_again_keeps_fence_and_events_and_repeats_nothing(tmp_path):
    config = configured(tmp_path)
    async with running(config) as node:
        await node.ready()
        await node.drill(kind="xid", code=79, gpu=1)
        await node.until(lambda: node.agent.spool.depth == 3)  # the fence and the two events
        fenced, depth = node.agent.supervisor.fenced, node.agent.spool.depth
    async with running(config) as again:
        assert again.agent.supervisor.fenced == fenced != frozenset()
        await again.until(lambda: again.agent.latest.seen is not None and "kernel" in again.agent.latest.sources)
        await asyncio.sleep(0)
        assert again.agent.spool.depth == depth
        assert not again.agent.latest.events


async def test_the_controllers_hold_replaces_the_fence(tmp_path):
    async with Controller() as controller, running(configured(tmp_path, controller.url)) as node:
        await node.ready()
        gpu = node.agent.latest.seen.gpus[0].uuid
        await node.drill(kind="xid", code=79, gpu=0)
        await controller.until(lambda c: any(isinstance(i, FenceItem) for i in c.items.values()))
        hold = HoldSpec(id="h1", gpu=gpu, owner="policy", reason="xid:79")
        controller.want(Desired(node="n1", epoch=1, generation=1, level=Level.REPAIR, holds=(hold,)))
        await controller.until(lambda c: c.batches[-1].generation == 1)
        await controller.until(lambda c: [i.op for i in c.items.values() if isinstance(i, FenceItem)] == FENCED)
        assert f'corral_gpu_held{{gpu="{gpu}"}} 1.0' in await node.metrics()


FENCED = ["placed", "replaced"]


async def test_an_application_fault_is_an_event_and_nothing_more(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        await node.drill(kind="xid", code=13, gpu=2, pid=os.getpid(), process="python")
        await node.until(lambda: node.agent.latest.events)
        (event,) = await node.events()
        assert (event.code, event.pid, event.recovery) == ("xid:13", os.getpid(), "restart_app")
        assert node.agent.supervisor.fenced == frozenset()


async def test_a_wrong_drill_and_a_drill_on_a_real_node_are_refused_with_the_reason(tmp_path):
    async with running(configured(tmp_path / "virtual")) as node:
        with pytest.raises(InputError, match="kind"):
            await node.drill(kind="earthquake")
        with pytest.raises(InputError, match="gpu"):
            await node.drill(kind="xid", code=79, gpu=11)
    real = configured(tmp_path / "real", virtual=None, kmsg=tmp_path / "kmsg", nvml_library=tmp_path / "none.so")
    async with running(real) as node:
        with pytest.raises(Refused, match="virtual"):
            await node.drill(kind="xid", code=79)


async def test_a_node_without_driver_and_kernel_log_runs_says_unknown_and_why(tmp_path):
    config = configured(
        tmp_path, virtual=None, kernel_log="kmsg", kmsg=tmp_path / "kmsg", nvml_library=tmp_path / "none.so"
    )
    async with Controller() as controller, running(msgspec.structs.replace(config, controller=controller.url)) as node:
        await controller.until(lambda c: c.facts is not None and "probe_permission" in _codes(c), 20.0)
        assert controller.facts.unknown_because
        shown = await node.get("/api/v1/node")
        states = {view["source"]: view["state"] for view in shown["sources"]}
        assert (states["nvml"], states["kernel"]) == ("down", "down")
        assert (await node.get("/healthz"))["status"] == "ok"
        body = await node.metrics()
        assert "corral_agent_source_up" in body
        assert "corral_gpu_power_watts{" not in body


async def test_a_hung_driver_blocks_neither_the_api_nor_the_fence_of_another_gpu(tmp_path):
    async with running(configured(tmp_path)) as node:
        await node.ready()
        await node.drill(kind="hang", gpu=4)
        await node.drill(kind="xid", code=79, gpu=0)
        await node.until(lambda: node.agent.supervisor.fenced)
        assert (await node.get("/healthz"))["status"] == "ok"


# -- as a process -------------------------------------------------------------------------------------------


def written(folder, text):
    path = folder / "agent.toml"
    path.write_text(text)
    return path


def toml(folder, port, **changes):
    usual = {
        "node": "n1", "controller": "http://127.0.0.1:9", "listen": f"127.0.0.1:{port}", "virtual": "8xH100",
        "state_dir": str(folder / "state"), "run_dir": str(folder / "run"), "pause_file": str(folder / "PAUSE"),
    }  # fmt: skip
    return "".join(f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in (usual | changes).items())


def run(path, **options):
    command = [sys.executable, "-m", "agent", "--config", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"colour": "red"}, "colour"),
        ({"virtual": "8xToaster"}, "Toaster"),
        ({"level": "max"}, "level"),
        ({"controller": "https://n0:7400", "tls_ca": "/nowhere.pem"}, "tls_ca: /nowhere.pem"),
        ({"state_dir": "/dev/null/state"}, "/dev/null/state"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_exit_2(tmp_path, changes, named):
    done = run(written(tmp_path, toml(tmp_path, free_port(), **changes)))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("corral-agent: ")
    assert named in line


@pytest.mark.parametrize("folder", ["state_dir", "run_dir"])
def test_a_disk_that_is_full_at_the_start_is_one_line(tmp_path, folder):
    limited = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (16, 16))
    place = tmp_path / folder
    kept = {key: str(tmp_path / "kept" / key) for key in ("state_dir", "run_dir")}
    if folder == "run_dir":  # the spool was there before
        Spool(Path(kept["state_dir"]) / "spool").close()
    path = written(tmp_path, toml(tmp_path, free_port(), **(kept | {folder: str(place)})))
    done = run(path, preexec_fn=limited)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"corral-agent: {folder}: {place} cannot be used")
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_one_line_that_names_it(tmp_path):
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        done = run(written(tmp_path, toml(tmp_path, door.getsockname()[1])))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("corral-agent: listen: 127.0.0.1:")
    assert "Traceback" not in done.stderr


def test_sigterm_ends_it_cleanly_with_exit_0(tmp_path):
    path = written(tmp_path, toml(tmp_path, free_port()))
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", "--config", str(path)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        for line in process.stderr:
            if "agent runs" in line:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.stderr.close()


def test_the_agent_pulls_in_neither_torch_nor_sqlalchemy():
    code = "import agent.__main__, sys; assert not {'torch', 'sqlalchemy', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
