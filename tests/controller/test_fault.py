"""One fault through the whole controller with the real Core, seen through the interface alone."""

from pathlib import Path

from msgspec.structs import replace

from controller.config import DeploymentConfig
from controller.deciding.mind import real_core
from tests.controller.house import RAW, House, event, house
from tests.controller.node import Node, break_gpu
from vocab.lines import ActionLine, AnyLine, HoldLine, StateLine
from vocab.messages import ReplicaStatus
from vocab.observations import Member, Owner
from vocab.states import ActionKind, ActionState

DEPLOYMENTS = (DeploymentConfig(name="chat", replicas=2, model="smollm2"),)


async def explain(home: House, gpu: str) -> list[AnyLine]:
    return await home.call("GET", f"/api/v1/gpus/{gpu}/explain", list[AnyLine])


def moves(lines: list[AnyLine]) -> list[str]:
    """The story in words, without the states in between."""
    told = []
    for line in lines:
        if isinstance(line, ActionLine):
            told.append(f"{line.of.value} {line.state.value}")
        elif isinstance(line, HoldLine):
            told.append(f"hold {line.op} {line.owner}")
        elif line.subject.gpu is not None:
            told.append(type(line).__name__)
    return [word for word in told if word not in {"StateLine", "start_replica running", "drain running"}]


async def test_explain_tells_the_fault_in_order_with_the_raw_line(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        _, gpu = await break_gpu(home)
        lines = await explain(home, gpu)
    assert [line.at for line in lines] == sorted(line.at for line in lines)
    told = moves(lines)
    order = [
        "EventLine",
        "ConditionLine",
        "IncidentLine",
        "hold placed policy",
        "start_replica ordered",
        "start_replica done",
        "drain ordered",
        "drain done",
        "reboot_node waiting",
    ]
    places = [told.index(word) for word in order]
    assert places == sorted(places), told
    assert told[-1] == "reboot_node waiting"
    assert told.count("hold placed policy") == 1
    assert told.count("start_replica ordered") == 1
    assert RAW in (proof.line for line in lines if hasattr(line, "event") for proof in line.event.evidence)


async def test_fleet_shows_one_incident_one_hold_and_the_reboot_that_waits(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        _, gpu = await break_gpu(home)
        fleet = await home.get("fleet")
        story = await home.get(f"incidents/{fleet['incidents_open'][0]['id']}")
    assert len(fleet["incidents_open"]) == 1
    (held,) = [each for each in fleet["nodes"][0]["gpus"] if each["holds"]]
    assert (held["uuid"], [hold["owner"] for hold in held["holds"]]) == (gpu, ["policy"])
    (waiting,) = fleet["actions_waiting"]
    assert waiting["of"] == "reboot_node"
    assert len(waiting["disrupts"]) >= 7
    assert fleet["deployments"][0]["ready"] == 2
    assert gpu not in {each for replica in fleet["replicas"] for each in replica["gpus"]}
    assert story["lines"][0]["kind"] == "event"


async def test_restart_decides_nothing_twice(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node, gpu = await break_gpu(home)
        before = moves(await explain(home, gpu))
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node.home = home
        await node.send()
        await node.settle()
        assert moves(await explain(home, gpu)) == before
        assert (await home.get("fleet"))["deployments"][0]["ready"] == 2


async def test_replicas_keep_their_address_over_a_restart(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node = Node(home)
        await node.send()
        await node.settle()
        before = {each["replica"]: each["url"] for each in await home.get("replicas")}
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        assert {each["replica"]: each["url"] for each in await home.get("replicas")} == before
        targets = [each["targets"][0] for each in await home.call("GET", "/sd/engines", list[dict[str, object]])]
        assert sorted(f"http://{target}" for target in targets) == sorted(before.values())
    assert len(before) == 2


async def test_approval_of_a_person_lets_the_reboot_go_on(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node, _ = await break_gpu(home)
        (waiting,) = (await home.get("fleet"))["actions_waiting"]
        await home.post("approvals", {"action": waiting["id"], "reason": "window is open", "force": True})
        (action,) = [each for each in await home.get("actions") if each["id"] == waiting["id"]]
        assert action["state"] != ActionState.WAITING or action["why"] != waiting["why"]
        assert action["of"] == ActionKind.REBOOT_NODE
        assert (await home.get("audit"))[-1]["reason"] == "window is open"
        await node.send()


async def test_a_gpu_that_a_person_releases_is_healthy_and_takes_work(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node, gpu = await break_gpu(home)
        lost = await home.get(f"gpus/{gpu}")
        assert (lost["state"], lost["placeable"]) == ("lost", False)
        await home.post("releases", {"subject": {"gpu": gpu}, "reason": "a new riser"})
        back = await home.get(f"gpus/{gpu}")
        assert (back["state"], back["placeable"], back["holds"], back["conditions"]) == ("healthy", True, [], [])
        await node.send()


async def test_pause_keeps_harm_back(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node = Node(home)
        await node.send()
        desired = await node.settle()
        await home.post("pause", {"reason": "freeze"})
        gpu = desired.replicas[0].members[0].gpu
        await node.send(event(1, gpu=int(gpu.removeprefix("GPU-"), 16)))
        await node.settle()
        told = moves(await explain(home, gpu))
        assert "hold placed policy" not in told
        assert not any(word.startswith(("drain ordered", "reboot_node ordered")) for word in told)
        assert "EventLine" in told


async def test_deployment_that_left_the_configuration_is_drained(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node = Node(home)
        await node.send()
        await node.settle()
    async with house(tmp_path, make_core=real_core) as home:
        node.home = home
        await node.send()
        desired = await node.obey()
        assert {spec.phase for spec in desired.replicas} <= {"drain", "stop"}


async def test_the_story_of_a_held_gpu_tells_why_its_replica_is_shut(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, deployments=DEPLOYMENTS) as home:
        node = Node(home)
        await node.send()
        desired = await node.settle()
        spec = desired.replicas[0]
        await home.post("holds", {"subject": {"gpu": spec.members[0].gpu}, "reason": "a new riser"})
        node.replicas = tuple(replace(one, admitting=one.replica != spec.replica) for one in node.replicas)
        await node.send()
        lines = await explain(home, spec.members[0].gpu)
    told = [line.why for line in lines if isinstance(line, StateLine) and line.subject.replica == spec.replica]
    assert told[-1].startswith(f"it is shut: {spec.members[0].gpu} is held by operator: a new riser")


async def test_the_story_of_a_gpu_tells_who_else_worked_there(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        node = Node(home)
        gpu = node.facts.gpus[0].uuid
        work = ReplicaStatus(
            replica="job-42@n1", deployment="", members=(Member(node="n1", gpu=gpu),), phase="ready", ready=True,
            admitting=True, observed=True, owner=Owner(kind="slurm", name="job-42", uid=1000), serves=False,
        )  # fmt: skip
        node.replicas = (work,)
        await node.send()
        assert (await home.get(f"gpus/{gpu}"))["used_by"] == ["slurm job-42, uid 1000"]
        node.replicas = ()
        await node.send()
        lines = await explain(home, gpu)
        assert (await home.get(f"gpus/{gpu}"))["used_by"] == []
    told = [line.to for line in lines if isinstance(line, StateLine) and line.subject.replica == "job-42@n1"]
    assert told == ["ready", "stopped"]
