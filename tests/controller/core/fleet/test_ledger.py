"""What the lines add up to, at work and after a restart."""

from tests.sim.node import Node
from tests.sim.world import World


def test_an_incident_that_grows_began_when_it_was_opened_also_after_a_restart(world: World, node: Node) -> None:
    node.hit(node.gpus[0], "xid:48", world.now)
    world.run(2)
    (opened,) = world.core.view().incidents
    world.run(30)
    node.hit(node.gpus[0], "xid:95", world.now)
    world.run(2)
    (grown,) = world.core.view().incidents
    assert (grown.id, grown.state) == (opened.id, "updated")
    assert grown.at > opened.at
    assert world.core.view().began == {opened.id: opened.at}
    world.restart()
    assert world.core.view().began == {opened.id: opened.at}
    world.ask("close", incident=opened.id, verdict="right", reason="seen")
    assert world.core.view().began == {}
