"""The hands within the whole agent: orders come as desired state, answers go to the controller, a boot starts anew."""

import asyncio

import pytest

from agent.agent import Agent
from tests.agent.test_agent import Running, configured, running
from tests.fakes.controller import Controller
from vocab.clock import SystemClock
from vocab.messages import ActionItem, Desired, Order
from vocab.states import ActionKind, ActionState

RESET, REBOOT, VALIDATE = ActionKind.RESET_GPU, ActionKind.REBOOT_NODE, ActionKind.VALIDATE
PATIENCE_S = 60.0


def wants(generation: int, *orders: Order) -> Desired:
    return Desired(node="n1", epoch=1, generation=generation, level="repair", orders=orders)


def answers(controller: Controller, order: str = "a-1") -> list[ActionState]:
    found = [item for item in controller.items.values() if isinstance(item, ActionItem)]
    return [item.state for item in found if item.id == order]


def gpu_of(node: Running, index: int = 0) -> str:
    return node.agent.latest.seen.gpus[index].uuid


async def test_a_reset_comes_as_desired_state_and_its_outcome_goes_to_the_controller(tmp_path):
    async with Controller() as controller, running(configured(tmp_path, controller.url)) as node:
        await node.ready()
        await node.drill(kind="remap", gpu=0)
        await node.until(lambda: node.agent.latest.gpus[gpu_of(node)].sample.readings.remap_pending == 1)
        order = Order(id="a-1", of=RESET, token="1.7", ttl_s=120.0, gpu=gpu_of(node))
        controller.want(wants(1, order))
        await controller.until(lambda c: ActionState.DONE in answers(c), PATIENCE_S)
        await node.until(lambda: node.agent.latest.gpus[gpu_of(node)].sample.readings.remap_pending == 0)
        controller.want(wants(2, order))
        await controller.until(lambda c: c.batches[-1].generation == 2, PATIENCE_S)
        assert answers(controller) == [ActionState.RUNNING, ActionState.DONE]
        assert controller.facts.abilities == (RESET, REBOOT)
        assert 'corral_agent_repairs_total{of="reset_gpu",state="done"} 1.0' in await node.metrics()


async def test_a_validation_is_answered_with_what_was_checked(tmp_path):
    async with Controller() as controller, running(configured(tmp_path, controller.url)) as node:
        await node.ready()
        controller.want(wants(1, Order(id="v-1", of=VALIDATE, token="1.8", ttl_s=900.0, gpu=gpu_of(node))))
        await controller.until(lambda c: answers(c, "v-1") == [ActionState.DONE], PATIENCE_S)
        recorded = b"".join(node.agent.ring.lines())
        assert recorded.count(b'"obs":"check"') == 5 + 2  # the quick active checks
        assert b'"check":"canary","gpu"' in recorded
        assert b"12 exact products" in recorded


async def test_a_pause_of_the_node_keeps_its_hands_still(tmp_path):
    async with Controller() as controller, running(configured(tmp_path, controller.url)) as node:
        await node.ready()
        (tmp_path / "PAUSE").touch()
        controller.want(wants(1, Order(id="a-1", of=RESET, token="1.7", ttl_s=120.0, gpu=gpu_of(node))))
        await controller.until(
            lambda c: bool(c.batches) and c.batches[-1].generation == 1 and c.batches[-1].paused, PATIENCE_S
        )
        assert answers(controller) == []
        (tmp_path / "PAUSE").unlink()
        await controller.until(lambda c: ActionState.DONE in answers(c), PATIENCE_S)


async def test_after_a_boot_the_agent_starts_anew_and_says_that_it_is_done(tmp_path):
    async with Controller() as controller:
        config = configured(tmp_path, controller.url)
        first, stop = Agent(config, SystemClock()), asyncio.Event()
        boot = first.hardware.boot_id
        controller.want(wants(1, Order(id="a-1", of=REBOOT, token="1.7", ttl_s=1200.0)))
        async with asyncio.timeout(PATIENCE_S):
            assert await first.run(stop) is True
        async with running(config) as node:
            await node.ready()
            await controller.until(lambda c: ActionState.DONE in answers(c), PATIENCE_S)
            assert node.agent.hardware.boot_id != boot
            assert controller.facts.boot_id == node.agent.hardware.boot_id


@pytest.mark.parametrize("of", [ActionKind.POWER_CYCLE])
async def test_what_no_agent_does_is_refused(tmp_path, of):
    async with Controller() as controller, running(configured(tmp_path, controller.url)) as node:
        await node.ready()
        controller.want(wants(1, Order(id="a-1", of=of, token="1.7", ttl_s=120.0)))
        await controller.until(lambda c: answers(c) == [ActionState.REFUSED], PATIENCE_S)
