"""Forty wrong holds at once, in virtual time: how long until everything serves as before."""

import itertools

from controller.core.fleet.settings import Limits, Settings
from controller.core.fleet.stimuli import Deployment
from tests.sim.node import Node
from tests.sim.world import World
from vocab.lines import HoldLine

NODES, WRONG = 10, 4  # GPUs of every node about which something is wrong
CODES = ("xid:95", "xid:48", "remap_failed", "ecc_uncorrectable", "xid:64")  # one rule stops itself at nine holds
LIMITS = Limits(cordons=NODES, cordons_ratio=1.0)
CHAT = Deployment(name="chat", replicas=76, min_ready=60)  # four spares: some drains run, most wait
PROMISED_S = 60.0


def test_forty_wrong_holds_are_back_to_full_routing_within_a_minute() -> None:
    world = World([Node(f"n{n}") for n in range(NODES)], (CHAT,), Settings(limits=LIMITS))
    world.run(20)
    codes = itertools.cycle(CODES)
    for node in world.nodes.values():
        for gpu in node.gpus[:WRONG]:
            node.hit(gpu, next(codes), world.now, fence=True)
    world.run(8)  # fenced, held, drains under way
    assert sum(hold.owner == "policy" for hold in world.core.view().holds) == NODES * WRONG
    assert routed(world) < CHAT.replicas - NODES
    began = world.now
    lines = world.ask("undo", since_s=600.0, reason="a bad probe")  # type: ignore[arg-type]
    assert sum(isinstance(line, HoldLine) and line.op == "lifted" for line in lines) == NODES * WRONG
    while routed(world) < CHAT.replicas and world.now - began < 10 * PROMISED_S:
        world.run(2)
    took = world.now - began
    print(f"40 wrong holds: all {CHAT.replicas} replicas are routed again {took:.0f} s after `corral undo`")
    assert took <= PROMISED_S
    world.run(700)
    assert [hold for hold in world.core.view().holds if hold.owner == "policy"] == []


def routed(world: World) -> int:
    """Replicas that a gateway sends new requests to."""
    return sum(replica.ready and replica.admitting for replica in world.core.view().replicas)
