"""/metrics: what is exported is in the catalogue, complete from the start, and readable by Prometheus."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from controller.config import DeploymentConfig
from controller.core.fleet.precision import Precision
from controller.core.fleet.views import View
from controller.deciding.mind import real_core
from controller.telling.export import GPU_STATES, Export, Snapshot
from tests.controller.house import batch, event, house, uuid
from tests.controller.node import Node
from vocab.lines import ActionLine, Budget, NoteLine, Subject
from vocab.metrics import CONTROLLER
from vocab.states import ActionKind, ActionState, Health, Phase, shown

EMPTY = View(
    paused=False, settled=True, nodes=(), deployments=(), replicas=(), incidents=(), conditions=(), holds=(),
    actions=(), counts={},
)  # fmt: skip


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(each.name, tuple(sorted(each.labels.items()))): each.value for each in found}


async def test_an_autoscaler_sees_how_busy_each_deployment_is(tmp_path: Path) -> None:
    deployments = (DeploymentConfig(name="chat", replicas=3, model="smollm2"),)
    async with house(tmp_path, make_core=real_core, deployments=deployments) as home:
        node = Node(home)
        await node.send()
        await node.obey()
        busy = [(4, 2, 0.55), (1, 0, 0.25), (0, 0, None)]
        node.replicas = tuple(
            replace(each, running=running, waiting=waiting, kv_ratio=kv)
            for each, (running, waiting, kv) in zip(node.replicas, busy, strict=True)
        )
        await node.send()
        found = samples((await home.raw("GET", "/metrics"))[1])
    chat = (("deployment", "chat"),)
    assert found["corral_gpus_stranded", chat] == 0
    shown = {
        name: found[f"corral_{name}", chat]
        for name in (
            "replicas_ready",
            "replicas_wanted",
            "replicas_starting",
            "deployment_requests_waiting",
            "deployment_requests_running",
            "deployment_kv_ratio",
        )
    }
    assert list(shown.values()) == [3, 3, 0, 2, 5, 0.4]


async def test_fleet_is_counted_as_the_view_has_it(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "noise"})
        found = samples((await home.raw("GET", "/metrics"))[1])
    assert found["corral_gpus", (("state", "cordoned"),)] == 1
    assert found["corral_gpus", (("state", "healthy"),)] == 1
    assert found["corral_gpus", (("state", "lost"),)] == 0
    states = {labels: value for (name, labels), value in found.items() if name == "corral_gpu_state"}
    assert states == {
        (("gpu", uuid(0)), ("node", "n1"), ("state", "cordoned")): 1,
        (("gpu", uuid(1)), ("node", "n1"), ("state", "healthy")): 1,
    }
    assert found["corral_holds", (("owner", "operator"),)] == 1
    assert found["corral_node_info", (("level", "observe"), ("node", "n1"), ("virtual", "true"))] == 1
    assert found["corral_ingest_batches_total", (("outcome", "stored"),)] == 1
    assert found["corral_lines_total", (("kind", "event"),)] == 1
    assert found["corral_store_up", ()] == 1
    assert found["corral_paused", ()] == 0


async def test_the_age_of_the_oldest_hold_is_told_by_its_owner(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        before = samples((await home.raw("GET", "/metrics"))[1])
        held = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "noise"})
        await home.post("holds", {"subject": {"gpu": uuid(1)}, "reason": "noise"})
        found = samples((await home.raw("GET", "/metrics"))[1])
    assert not [name for name, _ in before if name == "corral_oldest_hold_timestamp_seconds"]
    assert found["corral_oldest_hold_timestamp_seconds", (("owner", "operator"),)] == held["at"]


def repair(number: int, at: float, state: ActionState, budget: Budget | None = None) -> ActionLine:
    """A reset."""
    return ActionLine(
        at=at,
        subject=Subject(gpu=f"GPU-{number}"),
        id=f"a-{number}",
        of=ActionKind.RESET_GPU,
        state=state,
        token=f"1.{number}",
        rule="xid:95",
        policy="1",
        budget=budget,
        why="",
    )


def test_actions_say_since_when_the_oldest_is_there_and_what_repairs_wait_for() -> None:
    export = Export("1")
    full = Budget(limit=1, used=1, of="repairs at once")
    view = msgspec.structs.replace(
        EMPTY,
        actions=(
            repair(1, 50.0, ActionState.RUNNING),
            repair(2, 40.0, ActionState.RUNNING),
            repair(3, 60.0, ActionState.WAITING),
            repair(4, 61.0, ActionState.WAITING, full),
        ),
        halted={"i-1": "no attempt is left"},
        budgets={"repairs": Budget(limit=3, used=2, of="repairs at one time")},
    )
    export.snapshot = lambda: Snapshot(view=view, report_ages_s={}, readers=0, seq=1)
    found = samples(export.render()[0].decode())
    assert found["corral_oldest_action_timestamp_seconds", (("of", "reset_gpu"), ("state", "running"))] == 40.0
    assert found["corral_repairs_waiting", (("awaits", "person"),)] == 1
    assert found["corral_repairs_waiting", (("awaits", "budget"),)] == 1
    assert found["corral_incidents_halted", ()] == 1
    assert found["corral_budget_used", (("budget", "repairs"),)] == 2
    assert found["corral_budget_limit", (("budget", "repairs"),)] == 3


async def test_what_is_written_beside_the_loop_is_what_is_written_at_once() -> None:
    export, stranded = Export("1"), {"stranded": 0}
    views = [msgspec.structs.replace(EMPTY, counts=stranded, paused=paused) for paused in (True, False)]
    export.snapshot = lambda: Snapshot(view=views[-1], report_ages_s={"n1": 1.0}, readers=2, seq=1)
    (body, kind), (others, _) = await asyncio.gather(export.scrape(), export.scrape())
    assert (body, kind) == export.render()
    assert others == body


def test_a_rule_that_fell_back_to_shadow_is_told_by_its_name() -> None:
    export = Export("1")
    note = NoteLine(at=1.0, subject=Subject(), code="rule_demoted", text="xid:13 fired on 9 of 9 GPUs", rule="xid:13")
    shown: list[View] = [msgspec.structs.replace(EMPTY, demoted=(note,)), EMPTY]
    export.snapshot = lambda: Snapshot(view=shown.pop(0), report_ages_s={}, readers=0, seq=1)
    first, then = (samples(export.render()[0].decode()) for _ in range(2))
    assert first["corral_rule_demoted", (("rule", "xid:13"),)] == 1
    assert not [name for name, _ in then if name == "corral_rule_demoted"]


def test_a_rules_record_is_told_with_its_interval_once_somebody_has_judged_it() -> None:
    export = Export("1")
    judged = Precision(rule="xid:95", holds=9, would=1, right=8, wrong=1, ratio=8 / 9, low=0.565, high=0.98)
    unjudged = Precision(rule="xid:48", holds=2, would=0, right=0, wrong=0, ratio=None, low=None, high=None)
    view = View(
        paused=False, settled=True, nodes=(), deployments=(), replicas=(), incidents=(), conditions=(), holds=(),
        actions=(), counts={}, precision=(judged, unjudged), shadowed={"xid:31": "it is new"}, policy="v7",
    )  # fmt: skip
    export.snapshot = lambda: Snapshot(view=view, report_ages_s={}, readers=0, seq=1)
    found = samples(export.render()[0].decode())
    told = {name: value for (name, labels), value in found.items() if ("rule", "xid:95") in labels}
    assert found["corral_rule_verdicts", (("rule", "xid:95"), ("verdict", "none"))] == 1
    assert told["corral_rule_precision_ratio"] == pytest.approx(8 / 9)
    assert (told["corral_rule_precision_low_ratio"], told["corral_rule_precision_high_ratio"]) == (0.565, 0.98)
    assert found["corral_rule_shadowed", (("rule", "xid:31"),)] == 1
    assert found["corral_policy_info", (("version", "v7"),)] == 1
    assert not [name for (name, labels) in found if ("rule", "xid:48") in labels and "precision" in name]


async def test_malformed_batches_are_counted(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        headers = {"Content-Type": "application/json"}
        await home.raw("POST", "/api/v1/agent/batch", data=b"{", headers=headers)
        found = samples((await home.raw("GET", "/metrics"))[1])
    assert found["corral_ingest_batches_total", (("outcome", "malformed"),)] == 1


async def test_everything_exported_is_in_the_catalogue(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch(event(1)))
        text = (await home.raw("GET", "/metrics"))[1]
    names = {row.name for row in CONTROLLER}
    for family in text_string_to_metric_families(text):
        suffix = "_total" if family.type == "counter" else ""
        assert family.name + suffix in names
    assert all(len(row.labels) <= 6 for row in CONTROLLER)


def test_every_word_that_can_be_shown_for_a_gpu_is_a_state_of_the_metric() -> None:
    words = {
        shown(health=health, fresh=fresh, held=held, phase=phase)
        for health in Health
        for phase in Phase
        for fresh in (True, False)
        for held in (True, False)
    }
    assert words == set(GPU_STATES)
