"""The source of observed replicas over a made-up process table and engines that really answer."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from agent.judge import Judge
from agent.observed.processes import Processes
from agent.observed.source import ObservedSource
from agent.observed.talk import Talk
from tests.agent.observed.tree import Tree
from tests.fakes.vllm.meters import Meters
from vocab.clock import VirtualClock
from vocab.messages import EventItem
from vocab.observations import Member, Owner, ReplicaSeen, SourceState

UNIT = "0::/system.slice/vllm.service"


class Engine:
    """The doors of an engine that are asked."""

    def __init__(self):
        self.meters, self.health, self.asked = Meters("smol"), 200, []
        self.models, self.metrics = 200, 200

    @asynccontextmanager
    async def serving(self):
        app = web.Application()
        for path in ("/v1/models", "/health", "/metrics"):
            app.router.add_get(path, self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def answer(self, request):
        self.asked.append((request.method, request.path))
        if request.path == "/health":
            return web.Response(status=self.health)
        if request.path == "/metrics":
            return web.Response(body=self.meters.render(), status=self.metrics)
        return web.json_response({"object": "list", "data": [{"id": "smol"}]}, status=self.models)


class Bench:
    def __init__(self, root):
        self.tree = Tree(root)
        self.clock = VirtualClock(1000.0)
        self.listed, self.ours, self.heard = {"A": [12], "B": [13]}, frozenset(), []
        self.source = ObservedSource("n1", lambda: self.listed, lambda: self.ours, self.clock, Processes(root))

    def start(self, port, first=10, uid=1000, cgroup=UNIT):
        """A vLLM over two GPUs."""
        self.tree.add(first, "vllm", "serve", "meta/llama", "--port", str(port), cgroup=cgroup, uid=uid)
        for pid in (first + 2, first + 3):
            self.tree.add(pid, "VLLM::Worker", parent=first, session=first, cgroup=cgroup, uid=uid)

    def end(self, first=10):
        for pid in (first, first + 2, first + 3):
            self.tree.end(pid)

    async def look(self):
        """One look; the replicas that it told of."""
        self.heard.clear()
        async with Talk() as talk:
            await self.source.observe(self.heard.append, talk)
        return [seen for seen in self.heard if isinstance(seen, ReplicaSeen)]

    @property
    def states(self):
        return [(one.state, one.unsupported) for one in self.heard if isinstance(one, SourceState)]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


async def test_a_vllm_of_a_unit_is_seen_with_gpus_model_owner_and_beat(bench):
    async with Engine().serving() as engine:
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        engine.meters.add("generation_tokens_total", 9)
        engine.meters.observe("iteration_tokens_total", 1)
        (seen,) = await bench.look()
    assert seen.replica == f"vllm.service:{engine.port}@n1"
    assert seen.members == (Member(node="n1", gpu="A", rank=0), Member(node="n1", gpu="B", rank=1))
    assert (seen.observed, seen.phase, seen.ready, seen.health) == (True, "ready", True, 200)
    assert (seen.owner, seen.engine) == (Owner(kind="systemd-unit", name="vllm.service", uid=1000), "vllm")
    assert (seen.deployment, seen.model, seen.step, seen.tokens) == ("smol", "smol", 1, 9)
    assert seen.pids == (10, 12, 13)
    (status,) = bench.source.statuses()
    assert (status.observed, status.ready, status.url) == (True, True, f"http://127.0.0.1:{engine.port}")
    assert set(engine.asked) == {("GET", "/v1/models"), ("GET", "/metrics"), ("GET", "/health")}


async def test_one_that_loads_is_starting_and_not_asked(bench):
    bench.start(8000)
    (seen,) = await bench.look()
    assert (seen.phase, seen.ready, seen.health, seen.model) == ("starting", None, None, "meta/llama")
    assert not bench.source.statuses()[0].ready


async def test_a_restart_by_its_owner_is_the_same_replica_with_another_pid(bench):
    async with Engine().serving() as engine:
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        (first,) = await bench.look()
        bench.end()
        bench.listed = {"A": [], "B": []}
        (gone,) = await bench.look()
        assert (gone.replica, gone.phase, gone.exit) == (first.replica, "stopped", None)
        assert bench.source.statuses() == ()
        bench.start(engine.port, first=20)
        bench.tree.listen(20, engine.port)
        bench.listed = {"A": [22], "B": [23]}
        (second,) = await bench.look()
    assert (second.replica, second.pids) == (first.replica, (20, 22, 23))


async def test_a_gpu_that_tells_nothing_any_more_does_not_take_its_replica_away(bench):
    async with Engine().serving() as engine:
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        await bench.look()
        bench.listed = {"B": [13]}  # A is lost: its read has failed
        (seen,) = await bench.look()
    assert {member.gpu for member in seen.members} == {"A", "B"}


async def test_a_training_is_told_with_its_owner_and_gpus_and_never_asked(bench):
    bench.tree.add(12, "python3", "train.py", cgroup="0::/system.slice/train.service")
    bench.tree.add(13, "python3", "train.py", cgroup="0::/system.slice/train.service")
    async with Engine().serving() as engine:
        bench.tree.listen(12, engine.port)
        (seen,) = await bench.look()
        assert engine.asked == []
    assert (seen.replica, seen.serves, seen.observed, seen.pids) == ("train.service@n1", False, True, (12, 13))
    assert [member.gpu for member in seen.members] == ["A", "B"]
    (status,) = bench.source.statuses()
    assert (str(status.owner), status.serves, status.url) == ("systemd-unit train.service, uid 1000", False, "")


async def test_work_that_has_left_its_gpus_is_gone_though_its_process_lives(bench):
    bench.tree.add(12, "/opt/conda/bin/jupyter-lab")
    bench.tree.add(13, "/opt/conda/bin/jupyter-lab", parent=12, session=12)
    await bench.look()
    bench.listed = {"A": [], "B": [13]}
    (seen,) = await bench.look()
    assert (seen.replica, [member.gpu for member in seen.members]) == ("jupyter-lab:12@n1", ["B"])
    bench.listed = {"A": [], "B": []}
    (seen,) = await bench.look()
    assert (seen.replica, seen.phase, bench.source.statuses()) == ("jupyter-lab:12@n1", "stopped", ())


async def test_work_on_a_gpu_that_tells_nothing_any_more_stays_until_its_process_ends(bench):
    bench.tree.add(12, "python3", "train.py")
    bench.listed = {"A": [12]}
    await bench.look()
    bench.listed = {}
    (seen,) = await bench.look()
    assert [member.gpu for member in seen.members] == ["A"]
    bench.tree.end(12)
    (seen,) = await bench.look()
    assert seen.phase == "stopped"


async def test_one_that_closes_its_port_and_lives_on_is_draining(bench):
    async with Engine().serving() as engine:
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        await bench.look()
    for link in (bench.tree.root / "10" / "fd").iterdir():
        link.unlink()
    (seen,) = await bench.look()
    assert (seen.phase, seen.ready, seen.health) == ("ready", False, "refused")
    (seen,) = await bench.look()
    assert (seen.phase, seen.ready, seen.health) == ("draining", False, None)


async def test_one_that_asks_for_a_key_is_seen_with_the_model_of_its_command_line(bench):
    async with Engine().serving() as engine:
        engine.models = 401
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        (seen,) = await bench.look()
    assert (seen.model, seen.ready) == ("meta/llama", True)


async def test_one_without_metrics_has_no_beat_and_is_never_called_stalled(bench):
    async with Engine().serving() as engine:
        engine.metrics = 404
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        (seen,) = await bench.look()
    assert (seen.ready, seen.step, seen.running) == (True, None, None)


async def test_a_sick_door_is_told_as_it_answers(bench):
    async with Engine().serving() as engine:
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        await bench.look()
        engine.health = 503
        (seen,) = await bench.look()
    assert (seen.phase, seen.ready, seen.health) == ("ready", False, 503)


async def test_what_corral_started_is_left_to_its_supervisor(bench):
    bench.start(8000)
    bench.ours = frozenset({10})
    assert await bench.look() == []


async def test_a_node_without_engines_is_a_source_that_is_up_and_says_nothing(bench):
    assert await bench.look() == []
    assert bench.states == [("up", ())]
    await bench.look()
    assert bench.states == []  # no news


async def test_its_list_is_whole_after_two_looks(bench):
    await bench.look()
    assert not bench.source.has_looked()
    await bench.look()
    assert bench.source.has_looked()


async def test_where_no_driver_lists_processes_nothing_is_waited_for_longer(bench):
    bench.listed = {}
    await bench.look()
    await bench.look()
    assert not bench.source.has_looked()
    bench.clock.advance(15.0)
    assert bench.source.has_looked()


async def test_without_a_driver_that_lists_processes_nothing_is_said(bench):
    bench.listed = {}
    assert await bench.look() == []
    assert bench.states == []


class Blind(Processes):
    def listens(self, pid):
        return None


async def test_without_the_right_to_see_its_ports_it_is_work_and_that_is_said(bench):
    bench.source = ObservedSource("n1", lambda: bench.listed, lambda: NONE, bench.clock, Blind(bench.tree.root))
    bench.start(8000)
    (seen,) = await bench.look()
    assert (seen.replica, seen.serves) == ("vllm.service@n1", False)
    assert bench.states == [("degraded", ("systemd-unit vllm.service, uid 1000",))]
    assert "CAP_SYS_PTRACE" in bench.heard[0].error


NONE = frozenset()


class Stuck(Processes):
    """A table in which one process blocks whoever reads of it, until it is let go."""

    def __init__(self, root):
        super().__init__(root)
        self.free = threading.Event()

    def command(self, pid):
        self.free.wait(30)
        return super().command(pid)


async def test_a_process_that_blocks_its_reader_blocks_neither_the_loop_nor_the_end(bench):
    stuck = Stuck(bench.tree.root)
    bench.source = ObservedSource("n1", lambda: bench.listed, lambda: NONE, bench.clock, stuck, hangs_s=0.05)
    bench.start(8000)
    assert await bench.look() == []
    assert bench.states == [("degraded", ())]
    stuck.free.set()
    async with asyncio.timeout(60):
        while not await bench.look():
            pass
    assert ("up", ()) in bench.states


class Broken(Processes):
    """A table of which one line is not as it should be, once."""

    broken = True

    def look(self, pid):
        if self.broken:
            self.broken = False
            raise ValueError("no number")
        return super().look(pid)


async def test_a_look_that_breaks_is_followed_by_another(bench):
    bench.source = ObservedSource("n1", lambda: bench.listed, lambda: NONE, bench.clock, Broken(bench.tree.root))
    bench.start(8000)
    with pytest.raises(ValueError, match="no number"):
        await bench.look()
    assert len(await bench.look()) == 1


async def test_the_same_judge_calls_it_stalled_and_never_from_what_its_health_says(bench):
    judge = Judge("n1", boot_id="b1")
    async with Engine().serving() as engine:
        bench.start(engine.port)
        bench.tree.listen(10, engine.port)
        engine.meters.observe("iteration_tokens_total", 1)
        engine.meters.set("num_requests_running", 2)
        codes = []
        for _ in range(10):
            for seen in await bench.look():
                codes += [
                    item.event.code
                    for item in judge.observe(seen, bench.clock.monotonic())
                    if isinstance(item, EventItem)
                ]
            bench.clock.advance(5.0)
    assert codes == ["replica_stalled"]
