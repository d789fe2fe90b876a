"""Before a boot everything leaves and nothing starts; if the node stays up, what was wanted is wanted again."""

import pytest

from tests.agent.test_loop import Agent, desired, spec
from vocab.messages import Order
from vocab.states import ActionKind


class Hands:
    def __init__(self):
        self.orders = []

    def takes(self, order):
        return order.of is not ActionKind.POWER_CYCLE

    def order(self, orders):
        self.orders.append([order.id for order in orders])


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path)


def serving(agent):
    agent.replicas.living = {"r1": 77}
    agent.loop.apply(desired(replicas=(spec(),)))
    assert agent.replicas.specs == (spec(),)
    return agent


async def test_what_runs_leaves_before_a_boot_and_no_look_starts_it_again(agent):
    serving(agent).warden.leave(going=True)
    assert agent.replicas.specs == ()
    agent.loop.look()
    agent.loop.apply(desired(2, replicas=(spec(),)))
    assert agent.replicas.specs == ()


async def test_a_node_that_stays_up_wants_its_replicas_again(agent):
    serving(agent).warden.leave(going=True)
    agent.warden.leave(going=False)
    assert agent.replicas.specs == (spec(),)


async def test_repairs_and_validations_go_to_the_hands_with_every_desired_state(agent):
    hands = agent.warden.hands = Hands()
    orders = [
        Order(id=of.value, of=of, token="1.7", ttl_s=60.0)
        for of in (ActionKind.RESET_GPU, ActionKind.REBOOT_NODE, ActionKind.VALIDATE, ActionKind.POWER_CYCLE)
    ]
    agent.loop.apply(desired(orders=tuple(orders)))
    agent.loop.apply(desired(2))
    assert hands.orders == [["reset_gpu", "reboot_node", "validate"], []]
    assert agent.warden.answered == ("power_cycle",)
