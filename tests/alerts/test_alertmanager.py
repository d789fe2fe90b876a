"""alerts/alertmanager.yml: who hears of what, by Alertmanager's own tool, and what keeps what silent."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from alerts.house import ALERTS, GROUPS
from tests.alerts.inhibition import inhibited
from tests.programs import need

CONFIG = Path(__file__).parents[2] / "alerts" / "alertmanager.yml"
SUBJECT = {alert.name: group.subject for group in GROUPS for alert in group.alerts}


def amtool(*arguments: str) -> str:
    command = [need("amtool", "apt-get install prometheus-alertmanager"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def labels(name: str, **more: str) -> dict[str, str]:
    return {"alertname": name, "severity": ALERTS[name].severity.value, "subject": SUBJECT[name], **more}


def test_amtool_accepts_the_configuration():
    amtool("check-config", str(CONFIG))


@pytest.mark.parametrize(
    ("name", "receiver"),
    [
        ("CorralFloorInDanger", "page"),
        ("CorralGpuFault", "ticket"),
        ("CorralReplacing", "nobody"),
        ("CorralWatchdog", "deadman"),
    ],
)
def test_a_page_wakes_a_person_and_a_ticket_does_not(name, receiver):
    given = [f"{key}={value}" for key, value in labels(name).items()]
    said = amtool("config", "routes", "test", f"--config.file={CONFIG}", *given)
    assert said.split()[-1] == receiver


RULES = yaml.safe_load(CONFIG.read_text())["inhibit_rules"]


def silent(target: dict[str, str], *sources: dict[str, str]) -> bool:
    return inhibited(target, sources, RULES)


def test_a_node_that_is_blind_silences_its_gpus_and_no_others():
    blind = labels("CorralNodeBlind", node="n1")
    assert silent(labels("CorralGpuFault", node="n1", gpu="G1"), blind)
    assert silent(labels("CorralUplinkDown", node="n1"), blind)
    assert not silent(labels("CorralGpuFault", node="n2", gpu="G1"), blind)
    assert not silent(blind, blind)


def test_a_lost_node_is_one_ticket_and_silences_what_is_on_it():
    blind, lost = labels("CorralNodeBlind", node="n1"), labels("CorralNodeLost", node="n1", code="node_lost")
    assert silent(blind, blind, lost)
    assert not silent(lost, blind, lost)
    assert silent(labels("CorralPcie", node="n1", gpu="G1", code="aer"), blind, lost)


def test_a_gpu_that_is_out_of_service_is_one_ticket_unless_its_answers_were_wrong():
    fault = labels("CorralGpuFault", node="n1", gpu="G1")
    assert silent(labels("CorralPcie", node="n1", gpu="G1", code="pcie_width"), fault)
    assert silent(labels("CorralDriver", node="n1", gpu="G1", code="probe_hung"), fault)
    assert not silent(labels("CorralPcie", node="n1", gpu="G2", code="pcie_width"), fault)
    assert not silent(labels("CorralSilentCorruption", node="n1", gpu="G1", code="silent_corruption"), fault)


def test_what_corral_handles_is_no_page_until_it_takes_too_long():
    floor = labels("CorralFloorInDanger", deployment="chat")
    assert silent(floor, labels("CorralReplacing", deployment="chat"))
    assert not silent(floor, labels("CorralReplacing", deployment="other"))
    assert not silent(labels("CorralDeploymentDown", deployment="chat"), labels("CorralReplacing", deployment="chat"))


def test_one_fault_pages_once():
    down = labels("CorralDeploymentDown", deployment="chat")
    for name in ("CorralFloorInDanger", "CorralSloBurnFast", "CorralGatewayPanic"):
        assert silent(labels(name, deployment="chat"), down)
    assert silent(labels("CorralCapacityLost"), labels("CorralTooMuchSick"))
    assert silent(labels("CorralNoLeader"), labels("CorralTargetDown", job="corral-controller"))
    assert not silent(labels("CorralNoLeader"), labels("CorralTargetDown", job="corral-gateway"))
    assert not silent(down, labels("CorralTooMuchSick"))


def test_inhibition_names_alerts_and_labels_that_there_are():
    matchers = [text for rule in RULES for side in ("source_matchers", "target_matchers") for text in rule[side]]
    named = [name for text in matchers if text.startswith("alertname") for name in re.findall(r"Corral\w+", text)]
    assert set(named) <= set(ALERTS)
    assert {name for rule in RULES for name in rule.get("equal", ())} <= {"node", "gpu", "deployment"}
