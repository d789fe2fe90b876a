"""The acceptance drill: one fault, from a kernel line to a request that did not fail. Real processes throughout."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, fleet
from tests.e2e.load import Load

pytestmark = pytest.mark.e2e


def only(lines: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]


def placed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return only(lines, kind="hold", op="placed", owner="policy")


def starts(lines: list[dict[str, Any]]) -> set[str]:
    return {line["id"] for line in only(lines, kind="action", of="start_replica") if line["incident"]}


async def repaired_but_for_the_person(running: Fleet, uuid: str) -> list[dict[str, Any]]:
    """The story of this GPU once its replica has moved and the reboot waits."""

    async def settled() -> list[dict[str, Any]] | None:
        lines = await running.explain(uuid)
        reboot = only(lines, kind="action", of="reboot_node", state="waiting")
        return lines if reboot and await running.all_ready() else None

    return await running.until("replacement ready and reboot waiting", settled)


@pytest.mark.long
async def test_a_lost_gpu_costs_no_request_with_the_real_model(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=True) as running:
        victim = await running.gpu_serving("chat")
        old = next(each for each in await running.replicas("chat") if victim["uuid"] in each["gpus"])
        async with Load(running.plan.gateway, "chat", streams=4) as load:
            await load.served(4)
            done = await asyncio.to_thread(
                running.corral, "drill", "xid", "79", "--gpu", str(victim["index"]), "--agent", running.plan.agent
            )
            assert done.returncode == 0, done.stderr
            lines = await repaired_but_for_the_person(running, victim["uuid"])
            await load.served(4)
        assert load.failures == []
        _tells_the_whole_story(lines, victim["uuid"], old["replica"])

        others = [gpu for gpu in await running.gpus() if gpu["uuid"] != victim["uuid"]]
        assert {gpu["phase"] for gpu in others} == {"in_service"}
        assert not any(gpu["holds"] for gpu in others)

        told = await asyncio.to_thread(running.corral, "explain", victim["uuid"])
        assert "GPU has fallen off the bus" in told.stdout
        assert told.stdout.index("fallen off the bus") < told.stdout.index("reboot_node waiting")


def _tells_the_whole_story(lines: list[dict[str, Any]], gpu: str, old_replica: str) -> None:
    assert len(placed(lines)) == 1
    assert placed(lines)[0]["subject"] == {"gpu": gpu}
    assert len({line["id"] for line in only(lines, kind="incident")}) == 1
    assert len(starts(lines)) == 1
    fence = [line for line in only(lines, kind="hold") if line["owner"].startswith("agent:")]
    assert [line["op"] for line in fence] == ["placed", "lifted"]

    def first(**wanted: Any) -> int:
        return lines.index(only(lines, **wanted)[0])

    order = [
        first(kind="event"),
        first(kind="incident", state="open"),
        first(kind="hold", op="placed", owner="policy"),
        first(kind="action", of="start_replica", state="ordered"),
        first(kind="action", of="start_replica", state="done"),
        first(kind="action", of="drain", state="ordered"),
        first(kind="action", of="drain", state="done"),
        first(kind="action", of="reboot_node", state="waiting"),
    ]
    assert order == sorted(order)
    words = [line["to"] for line in only(lines, kind="state", subject={"replica": old_replica})]
    assert words[-2:] == ["draining", "stopped"]
    reboot = only(lines, kind="action", of="reboot_node", state="waiting")[-1]
    assert len([subject for subject in reboot["disrupts"] if subject.get("gpu")]) >= 7


async def test_an_application_fault_leaves_a_stepping_engine_alone(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        victim = await running.gpu_serving("chat")
        replica = next(each for each in await running.replicas("chat") if victim["uuid"] in each["gpus"])
        pid = replica["pid"]
        async with Load(running.plan.gateway, "chat", streams=4) as load:
            await running.drill("xid", victim["index"], code=13, pid=pid, process="python3")

            async def seen() -> Any:
                return only(await running.get("/api/v1/events", gpu=victim["uuid"]), code="xid:13")

            events = await running.until("event xid:13", seen)
            await load.served(8)
        assert load.failures == []
        assert events[0]["pid"] == pid
        gpu = next(gpu for gpu in await running.gpus() if gpu["uuid"] == victim["uuid"])
        assert gpu["holds"] == []
        assert gpu["phase"] == "in_service"
        assert [each["pid"] for each in await running.replicas("chat") if each["replica"] == replica["replica"]] == [
            pid
        ]


async def test_a_pair_is_placed_anew_when_one_member_falls(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        old = next(each for each in await running.replicas("pair") if each["state"] == "ready")
        gpus = {gpu["uuid"]: gpu for gpu in await running.gpus()}
        fallen, other = old["gpus"]
        async with Load(running.plan.gateway, "pair", streams=4) as load:
            await load.served(4)
            await running.drill("xid", gpus[fallen]["index"], code=79)
            lines = await repaired_but_for_the_person(running, fallen)
            await load.served(4)
        assert load.failures == []
        assert len({line["id"] for line in only(lines, kind="incident")}) == 1
        assert len(placed(lines)) == 1
        stranded = [line["to"] for line in only(lines, kind="state", subject={"replica": old["replica"]})]
        assert "stranded" in stranded
        new = next(each for each in await running.replicas("pair") if each["state"] == "ready")
        assert not set(new["gpus"]) & set(old["gpus"])
        assert len(new["gpus"]) == 2
        assert next(gpu for gpu in await running.gpus() if gpu["uuid"] == other)["holds"] == []


async def test_the_fence_needs_no_controller_and_the_rest_follows_once(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False, restart=False) as running:
        victim = await running.gpu_serving("chat")
        old = next(each for each in await running.replicas("chat") if victim["uuid"] in each["gpus"])
        async with Load(running.plan.gateway, "chat", streams=4) as load:
            await load.served(4)
            running.house.kill("controller")
            await running.house.ended("controller")
            await running.drill("xid", victim["index"], code=79)

            async def fenced() -> bool:
                from wire.client import Client  # the replica's own address

                async with Client(old["url"]) as engine:
                    try:
                        await engine.call("GET", "/ready", Any)
                    except Exception as error:  # noqa: BLE001 - any refusal counts, its text decides
                        return "fenced" in str(error)
                return False

            await running.until("replica fenced without a controller", fenced)
            await load.served(4)
            await running.house.start("controller")
            lines = await repaired_but_for_the_person(running, victim["uuid"])
            await load.served(4)
        assert load.failures == []
        _tells_the_whole_story(lines, victim["uuid"], old["replica"])


async def test_a_killed_agent_comes_back_to_the_same_replicas(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False, restart=False) as running:
        before = {each["replica"]: each["pid"] for each in await running.get("/api/v1/replicas")}
        async with Load(running.plan.gateway, "chat", streams=4) as load:
            await load.served(4)
            running.house.kill("agent")
            await running.house.ended("agent")
            await load.served(8)
            await running.house.start("agent")
            await running.until("all replicas ready", running.all_ready)
            await load.served(8)
        assert load.failures == []
        assert {each["replica"]: each["pid"] for each in await running.get("/api/v1/replicas")} == before


async def test_a_pause_stops_harm_and_not_releases(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        victim = await running.gpu_serving("chat")
        spare = next(gpu for gpu in await running.gpus() if not gpu["replica"])
        hold = await running.post("/api/v1/holds", {"subject": {"gpu": spare["uuid"]}, "reason": "a look at its riser"})
        assert running.corral("pause", "--reason", "a look around").returncode == 0
        await running.drill("xid", victim["index"], code=79)

        async def would() -> Any:
            return only(await running.explain(victim["uuid"]), kind="hold", op="would_place")

        await running.until("a hold that would be placed", would)
        lines = await running.explain(victim["uuid"])
        assert placed(lines) == []
        assert not [line for line in only(lines, kind="action") if line["state"] in {"ordered", "running", "done"}]
        assert len([each for each in await running.replicas("chat") if each["state"] == "ready"]) == 2

        assert running.corral("lift", hold["id"], "--reason", "looked").returncode == 0

        async def lifted() -> bool:
            return not next(gpu for gpu in await running.gpus() if gpu["uuid"] == spare["uuid"])["holds"]

        await running.until("the operator's hold lifted during the pause", lifted)
        assert running.corral("resume").returncode == 0
        await repaired_but_for_the_person(running, victim["uuid"])


async def test_a_node_that_lost_all_its_gpus_says_so_and_comes_back_whole(tmp_path: Path) -> None:
    async with fleet(tmp_path, real_engine=False) as running:
        for gpu in await running.gpus():
            await running.drill("xid", gpu["index"], code=79)

        async def nothing_runs() -> bool:
            now = await running.get("/api/v1/fleet")
            return now["replicas"] == [] and not any(gpu["placeable"] for gpu in await running.gpus())

        await running.until("no replica left on lost GPUs", nothing_runs)
        short = {each["name"]: each["short_because"] for each in await running.get("/api/v1/deployments")}
        assert short["chat"].startswith("2 to start: no GPU is free: ")  # lost, or held until it is proven
        assert short["pair"].startswith("1 to start: no node has 2 GPUs free: ")
        assert "chat: 0 of 2 replicas ready: 2 to start: no GPU is free: " in running.corral("status").stdout
        for gpu in await running.gpus():
            await running.drill("clear", gpu["index"])
            done = running.corral("release", str(gpu["index"]), "--reason", "a new riser")
            assert done.returncode == 0, done.stderr
        await running.until("all replicas ready again", running.all_ready)
