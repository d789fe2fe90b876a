import asyncio
import time
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web

from agent.page import Page
from agent.spool import Spool
from agent.uplink import Uplink, stored
from tests.agent.made import NODE, identity, sample, uuid
from tests.agent.test_spool import item
from tests.fakes.controller import Controller
from vocab.clock import SystemClock
from vocab.messages import BatchAck, Desired, NodeFacts
from wire.client import Client

FACTS = NodeFacts(node=NODE, boot_id="boot-1", virtual=True, gpus=tuple(map(identity, range(8))))


class Node:
    def __init__(self):
        self.known, self.list, self.applied, self.results = FACTS, (), [], []
        self.looked = True

    def facts(self):
        return self.known

    def replicas(self):
        return self.list

    def has_looked(self):
        return self.looked

    def paused(self):
        return False

    def apply(self, desired):
        self.applied.append(desired)

    def batch(self, result):
        self.results.append(result)

    def failed(self, part):
        self.results.append(f"failed {part}")


class Link:
    def __init__(self, folder, url):
        self.node, self.spool, self.page = Node(), Spool(folder / "spool"), Page()
        self.path = folder / "desired.json"
        self.client = Client(url)
        self.uplink = Uplink(
            self.client, self.node, NODE, "session", self.spool, self.page, SystemClock(), self.node, self.path,
            stored(self.path),
        )  # fmt: skip

    def say(self, *items):
        self.spool.append(items)
        self.uplink.wake()

    @asynccontextmanager
    async def running(self):
        async with self.client:
            task = asyncio.ensure_future(self.uplink.run())
            try:
                yield self
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def until(self, holds, within_s=60.0):
        async with asyncio.timeout(within_s):
            while not holds():
                await asyncio.sleep(0.01)


@pytest.fixture
async def controller():
    async with Controller() as made:
        yield made


async def test_a_new_item_goes_up_at_once_and_is_deleted_when_confirmed(tmp_path, controller):
    async with Link(tmp_path, controller.url).running() as link:
        await controller.until(lambda c: c.batches)
        began = asyncio.get_running_loop().time()
        link.say(item("a"))
        await controller.until(lambda c: 1 in c.items)
        assert asyncio.get_running_loop().time() - began < 1.0  # a heartbeat would take two
        await link.until(lambda: link.spool.depth == 0)


async def test_the_first_batch_carries_the_facts_and_later_ones_only_changes(tmp_path, controller):
    async with Link(tmp_path, controller.url).running() as link:
        await controller.until(lambda c: c.batches)
        assert controller.facts == FACTS
        link.say(item("a"))
        await controller.until(lambda c: 1 in c.items)
        assert controller.batches[-1].facts is None
        assert controller.batches[-1].replicas is None


async def test_the_list_of_replicas_is_not_told_before_it_is_whole(tmp_path, controller):
    link = Link(tmp_path, controller.url)
    link.node.looked = False
    async with link.running():
        await controller.until(lambda c: c.batches)
        assert controller.batches[-1].replicas is None
        link.node.looked = True
        link.say(item("a"))
        await controller.until(lambda c: c.batches[-1].replicas == ())


async def test_a_controller_that_forgot_is_told_everything_anew(tmp_path, controller):
    async with Link(tmp_path, controller.url).running() as link:
        await controller.until(lambda c: c.batches)
        controller.facts, controller.want_facts = None, True
        link.say(item("a"))
        await controller.until(lambda c: c.facts is not None)


async def test_nothing_is_lost_while_the_controller_is_gone(tmp_path, controller):
    async with Link(tmp_path, controller.url).running() as link:
        await controller.until(lambda c: c.batches)
        await controller.stop()
        link.say(item("a"), item("b"))
        await link.until(lambda: "unreachable" in link.node.results)
        link.say(item("c"))
        await controller.restart()
        await controller.until(lambda c: set(c.items) == {1, 2, 3})
        await link.until(lambda: link.spool.depth == 0)


async def test_a_lost_answer_makes_a_repeat_and_not_a_loss(tmp_path, controller):
    controller.fault = "deaf"
    async with Link(tmp_path, controller.url).running() as link:
        link.say(item("a"))
        await controller.until(lambda c: c.repeats)
        controller.fault = None
        await link.until(lambda: link.spool.depth == 0)
        assert set(controller.items) == {1}


async def test_one_item_that_is_refused_for_good_does_not_block_the_others(tmp_path, controller):
    controller.fault, controller.poison = "refuse", lambda it: it.event.id == "bad"
    async with Link(tmp_path, controller.url).running() as link:
        link.say(item("a"), item("bad"), item("c"))
        await controller.until(lambda c: set(c.items) == {1, 3})
        await link.until(lambda: link.spool.depth == 0)
        assert link.spool.dropped == 1


async def test_desired_is_on_disk_before_it_is_in_force_and_comes_back_after_a_restart(tmp_path, controller):
    wanted = Desired(node=NODE, epoch=1, generation=4)
    async with Link(tmp_path, controller.url).running() as link:
        controller.want(wanted)
        await link.until(lambda: link.node.applied == [wanted])
        assert msgspec.json.decode(link.path.read_bytes(), type=Desired) == wanted
        await controller.until(lambda c: c.batches[-1].generation == 4)
    link.spool.close()
    again = Link(tmp_path, controller.url)
    assert again.uplink.desired == wanted


async def test_an_older_desired_is_never_taken(tmp_path, controller):
    new, old = Desired(node=NODE, epoch=2, generation=1), Desired(node=NODE, epoch=1, generation=9)
    async with Link(tmp_path, controller.url).running() as link:
        controller.want(new)
        await link.until(lambda: link.node.applied == [new])
        controller.want(old)
        seen = len(controller.batches)
        await controller.until(lambda c: len(c.batches) > seen)
        assert link.node.applied == [new]


async def test_a_damaged_desired_file_is_as_good_as_none(tmp_path):
    (tmp_path / "desired.json").write_bytes(b'{"node": "n1", ')
    assert stored(tmp_path / "desired.json") is None


async def test_something_else_at_the_controllers_address_is_unreachable(tmp_path):
    async def page(_):
        return web.Response(text="<html>hello</html>")

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with Link(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}").running() as link:
        await link.until(lambda: "unreachable" in link.node.results)
    await runner.cleanup()


async def test_a_controller_that_takes_no_report_is_not_asked_for_orders_beside(tmp_path):
    asked = []

    async def down(request):
        asked.append(request.path)
        raise web.HTTPServiceUnavailable

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", down)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with Link(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}").running() as link:
        await link.until(lambda: link.node.results.count("unreachable") >= 3)
    await runner.cleanup()
    assert {path.rpartition("/")[2] for path in asked} == {"batch"}


async def test_an_idle_heartbeat_is_small(tmp_path, controller, record_property):
    async with Link(tmp_path, controller.url).running() as link:
        for index in range(8):
            link.page.take(uuid(index), sample(SystemClock().now(), index, power_w=70.0, utilization_ratio=0.0))
        await controller.until(lambda c: len(c.gpus) == 8)
        seen = len(controller.sizes)
        link.uplink.wake()
        await controller.until(lambda c: len(c.sizes) > seen + 1)
    idle = controller.sizes[-1]
    record_property("idle_heartbeat_bytes", idle)
    print(f"idle heartbeat: {idle} bytes")
    assert idle <= 300


async def test_the_controller_says_how_often_it_wants_to_hear(tmp_path, controller):
    link = Link(tmp_path, controller.url)
    for asked, obeyed in ((5.0, 5.0), (600.0, 10.0), (0.0, 2.0)):
        link.uplink._stored(link.uplink._batch(), BatchAck(position=0, generation=0, heartbeat_s=asked))
        assert link.uplink._heartbeat_s == obeyed


async def test_a_controller_that_is_down_and_up_again_is_found_without_help(tmp_path, controller):
    controller.fault = "gone"
    async with Link(tmp_path, controller.url).running() as link:
        await link.until(lambda: link.node.results.count("unreachable") >= 2)
        assert not link.uplink.up
        controller.fault = None
        await link.until(lambda: link.uplink.up)


async def test_a_controller_that_asks_for_time_is_given_it(tmp_path):
    asked_at = []

    async def busy(request):
        if request.path.endswith("/batch"):
            asked_at.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": "1"})

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", busy)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with Link(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}").running() as link:
        link.say(item("a"))
        await link.until(lambda: len(asked_at) >= 2)
        assert link.spool.depth == 1
    await runner.cleanup()
    assert asked_at[1] - asked_at[0] >= 1.0


class Unsynced(Spool):
    """On a disk that takes bytes and then cannot make them durable."""

    async def flush(self):
        raise OSError(28, "No space left on device")


async def test_a_disk_that_cannot_sync_is_counted_and_ends_nothing(tmp_path, controller):
    link = Link(tmp_path, controller.url)
    link.spool = link.uplink._spool = Unsynced(tmp_path / "full")
    async with link.running():
        link.say(item(1))
        await link.until(lambda: link.node.results.count("stored") >= 2)
    assert "failed spool" in link.node.results
