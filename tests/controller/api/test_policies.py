"""Policies over the interface: adopted, gone back to, compared with what is in force. Incidents that people judge."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from controller.config import PoolConfig
from controller.deciding.mind import real_core
from controller.store.records import Write
from tests.controller.house import House, batch, event, facts, house, uuid
from tests.controller.postgres import Server
from vocab.errors import InputError, Refused
from vocab.states import Level

STRICT = 'version = "strict"\n[rules."xid:79"]\nrecovery = "power_cycle"\n'
QUIET = 'version = "quiet"\n[rules."xid:79"]\nshadow = true\n'


async def adopt(home: House, content: str | None = None, reason: str = "looked at it") -> Any:
    return await home.post("policy/adoptions", {"content": content, "reason": reason})


async def numbers(home: House) -> list[tuple[int, str]]:
    return [(each["number"], each["version"]) for each in await home.get("policy/adoptions")]


async def hit(home: House, number: int = 1, gpu: int = 0) -> None:
    await home.post(
        "agent/batch", batch(event(number, gpu=gpu), first=number, facts=replace(facts(gpus=12), level=Level.REPAIR))
    )


async def test_a_fresh_install_adopts_what_is_built_in_and_says_so(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        found = await home.get("policy")
    adopted = found["adopted"]
    assert (adopted["number"], adopted["version"], adopted["actor"]) == (1, "builtin-1", "corral")
    assert (found["shadowed"], found["unheeded"], found["precision"]) == ({}, None, [])


async def test_what_is_adopted_is_in_force_at_once_and_after_a_restart(
    tmp_path: Path, database: dict[str, Any]
) -> None:
    async with house(tmp_path, make_core=real_core, **database) as home:
        assert (await adopt(home, QUIET))["number"] == 2
        assert (await home.get("policy"))["version"] == "quiet"
        await hit(home)
        assert await home.get("holds") == []
        (entry,) = await home.get("audit")
        assert (entry["act"], entry["subject"], entry["reason"]) == ("adopt_policy", "policy:quiet", "looked at it")
    async with house(tmp_path, make_core=real_core, **database) as home:
        assert (await home.get("policy"))["version"] == "quiet"
        assert await numbers(home) == [(2, "quiet"), (1, "builtin-1")]
        assert (await home.get("policy/adoptions/2"))["content"] == QUIET


async def test_going_back_is_another_adoption(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await adopt(home, QUIET)
        await adopt(home, STRICT)
        back = await home.post("policy/reverts", {"reason": "too strict"})
        assert (back["number"], back["version"], back["reverts"]) == (4, "quiet", 2)
        await home.post("policy/reverts", {"number": 1, "reason": "as it was"})
        assert (await home.get("policy"))["version"] == "builtin-1"
        assert [number for number, _ in await numbers(home)] == [5, 4, 3, 2, 1]


async def test_what_cannot_be_adopted_is_named_and_changes_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        with pytest.raises(InputError) as refusal:
            await adopt(home, 'level = "most"\n[rules."gpu_lots"]\nshadow = true\n')
        assert "policy: level: Invalid enum value 'most'" in str(refusal.value)
        assert 'policy: rules."gpu_lots": there is no such code' in str(refusal.value)
        with pytest.raises(InputError, match=r"the configuration has no \[pools.test\]"):
            await adopt(home, '[pools.test]\nlevel = "observe"\n')
        await adopt(home, QUIET)
        with pytest.raises(Refused, match="version 'quiet' was adopted with another content"):
            await adopt(home, QUIET + "# more\n")
        with pytest.raises(Refused, match="no adoption '9'"):
            await home.post("policy/reverts", {"number": 9, "reason": "x"})
        with pytest.raises(Refused, match="no adoption '³'"):
            await home.get("policy/adoptions/³")
        assert await numbers(home) == [(2, "quiet"), (1, "builtin-1")]


async def test_there_is_nothing_before_the_first_adoption(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        with pytest.raises(Refused, match="no adoption before"):
            await home.post("policy/reverts", {"reason": "x"})


async def upgraded(folder: Path) -> None:
    """A database whose policy was adopted with a catalogue in which an Xid 79 was milder and an Xid 95 unknown."""
    async with house(folder, make_core=real_core) as home:
        adopted = home.inside.mind.adopted
        assert adopted is not None
        older = {code: rule for code, rule in adopted.pinned.items() if code != "xid:95"}
        older["xid:79"] = replace(older["xid:79"], severity="warning")
        await home.inside.store.commit(Write(at=1.0, adoptions=[replace(adopted, number=2, pinned=older)]))


async def test_after_an_upgrade_changed_rules_act_as_they_were_and_say_what_they_would_do_until_somebody_adopts_them(
    tmp_path: Path,
) -> None:
    await upgraded(tmp_path)
    async with house(tmp_path, make_core=real_core) as home:
        found = await home.get("policy")
        assert found["shadowed"] == {
            "xid:79": "it acts as it was adopted, and has changed since: severity warning is critical",
            "xid:95": "it is new since the policy was adopted",
        }
        assert {rule["code"] for rule in found["rules"] if rule["shadow"]} == {"xid:95"}
        await hit(home)
        assert await home.get("holds") == []
        (line,) = [each for each in await home.get(f"gpus/{uuid(0)}/explain") if each["kind"] == "note"]
        assert line["text"] == (
            "xid:79: as adopted warning, reboot_node: not held; as changed it would be critical, reboot_node: held"
        )
        await adopt(home, None)
        assert await home.get("holds") == []
        await hit(home, 2)
        assert [hold["rule"] for hold in await home.get("holds")] == ["xid:79"]
        assert (await home.get("policy"))["shadowed"] == {}


async def compared(home: House, body: dict[str, Any]) -> dict[str, Any]:
    """What a comparison tells at its end."""
    told = [each async for each in home.lines("POST", "/api/v1/policy/diffs", Any, body)]
    assert {each["told"] for each in told[:-1]} == {"progress"}
    assert told[-1]["told"] == "diff"
    return dict(told[-1])


async def test_a_comparison_tells_what_differs_and_what_the_last_days_would_have_been(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core, pools={"test": PoolConfig(nodes=("n1",))}) as home:
        now = int(home.inside._clock.now()) - 1_796_000_000
        for number, gpu in ((1, 0), (2, 1)):
            fault = event(now - 7200 + number, gpu=gpu)
            await home.post("agent/batch", batch(fault, first=number, facts=facts(gpus=2)))
        found = await compared(home, {"content": QUIET})
        strict = await compared(home, {"content": STRICT})
        same = await compared(home, {})
        assert await numbers(home) == [(1, "builtin-1")]
    assert (found["before"], found["after"], found["events"]) == ("builtin-1", "quiet", 2)
    assert found["first"] > found["since"]
    (rule,) = found["differences"]
    assert rule["key"] == 'rules."xid:79"'
    assert rule["before"] == "critical, reboot_node: holds"
    assert rule["after"] == "critical, reboot_node: holds; in shadow: the policy says so"
    counted = {(each["rule"], each["of"]): (each["before"], each["after"]) for each in found["decided"]}
    assert counted == {("xid:79", "hold"): (2, 0), ("xid:79", "reboot_node"): (1, 0)}
    counted = {(each["rule"], each["of"]): (each["before"], each["after"]) for each in strict["decided"]}
    assert counted[("xid:79", "hold")] == (2, 2)
    assert counted[("xid:79", "reboot_node")] == (1, 0)
    assert counted[("xid:79", "power_cycle")][0] == 0 < counted[("xid:79", "power_cycle")][1]
    assert same["differences"] == []
    assert all(each["before"] == each["after"] for each in same["decided"])


# -- incidents -------------------------------------------------------------------------------------------


async def test_an_incident_is_closed_with_a_verdict_that_counts_for_its_rule(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        await hit(home)
        (incident,) = await home.get("incidents", state="open")
        closed = await home.post(f"incidents/{incident['id']}/close", {"verdict": "wrong", "reason": "a loose cable"})
        assert [line["code"] for line in closed["lines"] if line["kind"] == "note"] == ["set_healthy", "verdict"]
        assert await home.get("incidents", state="open") == []
        assert await home.get("holds") == []
        (record,) = (await home.get("policy"))["precision"]
        assert (record["rule"], record["holds"], record["wrong"], record["ratio"]) == ("xid:79", 1, 1, 0.0)
        assert (await home.get("audit"))[-1]["act"] == "close:wrong"
        story = await home.get(f"incidents/{incident['id']}")
        assert story["lines"][-1]["text"].endswith("a loose cable")
        with pytest.raises(Refused, match="closed already"):
            await home.post(f"incidents/{incident['id']}/close", {})
        with pytest.raises(Refused, match="no incident 'i-none'"):
            await home.post("incidents/i-none/close", {"verdict": "right"})
        with pytest.raises(InputError, match="verdict"):
            await home.post(f"incidents/{incident['id']}/close", {"verdict": "maybe"})


# -- several controllers ---------------------------------------------------------------------------------


async def shows(home: House, version: str) -> None:
    """Wait until this controller works by a policy."""
    async with asyncio.timeout(60):
        while (await home.get("policy"))["version"] != version:
            await asyncio.sleep(0.02)


async def test_what_one_controller_is_told_to_adopt_is_in_force_for_all_and_for_the_next_that_decides(
    tmp_path: Path, postgres: Server
) -> None:
    keys: dict[str, Any] = {"make_core": real_core, **postgres.settings(postgres.fresh())}
    async with house(tmp_path / "b", **keys) as second:
        async with house(tmp_path / "a", **keys) as first:
            follower = first if second.inside.conductor.decides else second
            assert (await adopt(follower, QUIET))["number"] == 2
            await shows(first, "quiet")
            await shows(second, "quiet")
            await adopt(follower, STRICT)
            await follower.post("policy/reverts", {"number": 2, "reason": "too strict"})
            await shows(first, "quiet")
            await shows(second, "quiet")
        async with house(tmp_path / "c", **keys) as third:
            await shows(third, "quiet")
            assert [number for number, _ in await numbers(third)] == [4, 3, 2, 1]
