"""Words for people."""

from controller.core.fleet.views import View
from controller.pages.words import Names
from tests.controller import showcase

FLEET = showcase.fleet()
VIEW = View(
    paused=False, settled=True, nodes=FLEET.nodes, deployments=(), replicas=(), incidents=(), conditions=(), holds=(),
    actions=(), counts={},
)  # fmt: skip


def test_the_audits_gpus_are_named_as_everywhere_and_all_else_stays() -> None:
    gpus = FLEET.nodes[0].gpus
    told = f"hold h-1 placed on gpu:{gpus[3].uuid}; drain ordered on replica:chat-1; hold on gpu:{gpus[0].uuid}"
    said = "hold h-1 placed on GPU 3; drain ordered on replica:chat-1; hold on GPU 0"
    assert Names(VIEW).within(told) == said
