"""Words for people."""

from controller.core.fleet.views import View
from controller.pages.words import Names, standing, without_paths
from tests.controller import showcase
from vocab.events import Recovery, Severity
from vocab.lines import IncidentLine, Subject

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


def test_who_is_lost_on_a_page_is_sent_to_a_page() -> None:
    assert without_paths("there is no GPU 'x'; /api/v1/gpus lists them") == "there is no GPU 'x'; the map shows them"
    assert without_paths("there is no action 'x'; /api/v1/actions?state=open lists them") == "there is no action 'x'"


def test_an_incident_that_has_grown_is_open() -> None:
    grown = IncidentLine(
        at=1.0, subject=Subject(node="n1"), id="i-1", state="updated", root="e1", code="xid:79",
        severity=Severity.CRITICAL, recovery=Recovery.REBOOT_NODE,
    )  # fmt: skip
    assert standing(grown) == "open"
