"""Orders of people: done through the Core, audited, refused with the reason."""

from pathlib import Path
from typing import Any

import pytest

from controller.deciding.mind import real_core
from tests.controller.house import House, batch, house, uuid
from vocab.errors import InputError, Refused


async def lift(home: House, hold: str, **body: Any) -> Any:
    return await home.call("DELETE", f"/api/v1/holds/{hold}", Any, {"reason": "fixed", **body})


async def test_hold_is_answered_with_its_id_and_stands(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        hold = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "fan noise"})
        assert (hold["op"], hold["owner"], hold["reason"]) == ("placed", "operator", "fan noise")
        assert [each["id"] for each in await home.get("holds")] == [hold["id"]]
        assert (await home.get(f"gpus/{uuid(0)}"))["state"] == "cordoned"
        assert (await home.get(f"gpus/{uuid(1)}"))["state"] == "healthy"


async def test_lifting_one_hold_lifts_no_other(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        first = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "fan noise"})
        second = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "burn-in", "owner": "lab"})
        await lift(home, first["id"])
        assert [each["id"] for each in await home.get("holds")] == [second["id"]]


async def test_hold_of_another_owner_is_lifted_only_with_force(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        hold = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "burn-in", "owner": "lab"})
        with pytest.raises(Refused):
            await lift(home, hold["id"])
        assert len(await home.get("holds")) == 1
        await lift(home, hold["id"], force=True)
        assert await home.get("holds") == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"subject": {"gpu": "GPU-none"}, "reason": "x"}, "no gpu 'GPU-none'"),
        ({"subject": {"gpu": uuid(0), "node": "n1"}, "reason": "x"}, "exactly one of gpu, node"),
        ({"subject": {"replica": "chat-1"}, "reason": "x"}, "exactly one of gpu, node"),
        ({"subject": {}, "reason": "x"}, "exactly one of gpu, node"),
        ({"subject": {"gpu": uuid(0)}}, "missing required field `reason`"),
        ({"subject": {"gpu": uuid(0)}, "reason": ""}, "$.reason"),
        ({"subject": {"gpu": uuid(0)}, "reason": "x", "owner": "policy"}, "Corral's own"),
        ({"subject": {"node": "n1"}, "reason": "x", "owner": "maintenance"}, "Corral's own"),
        ({"subject": {"gpu": uuid(0)}, "reason": "x", "owner": "agent:n1"}, "$.owner"),
    ],
)
async def test_wrong_hold_is_refused_naming_what_is_wrong(tmp_path: Path, body: Any, said: str) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        with pytest.raises((InputError, Refused)) as refusal:
            await home.post("holds", body)
        assert said in str(refusal.value)
        assert await home.get("holds") == []


async def test_unknown_hold_and_action_are_not_found(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        with pytest.raises(Refused, match="no standing hold 'h-none'"):
            await lift(home, "h-none")
        with pytest.raises(Refused, match="no unfinished action 'a-none'"):
            await home.post("approvals", {"action": "a-none", "reason": "go"})


async def test_pause_and_resume(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        assert (await home.post("pause", {"reason": "freeze"}))["outcome"] == "paused"
        assert (await home.get("fleet"))["paused"] is True
        await home.post("resume", {"reason": "thaw"})
        assert (await home.get("fleet"))["paused"] is False


async def test_a_person_who_has_looked_discards_what_waits(tmp_path: Path) -> None:
    async with house(tmp_path, make_core=real_core) as home:
        assert (await home.post("discards", {"reason": "a bad probe"}))["outcome"] == "backlog_discarded"
        assert [each["act"] for each in await home.get("audit")] == ["discard_backlog"]


async def test_every_order_is_audited_with_what_came_of_it(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await home.post("agent/batch", batch())
        hold = await home.post("holds", {"subject": {"gpu": uuid(0)}, "reason": "burn-in", "owner": "lab"})
        with pytest.raises(Refused):
            await lift(home, hold["id"])
        entries = await home.get("audit")
        assert [(each["act"], each["subject"], each["reason"]) for each in entries] == [
            ("hold", f"gpu:{uuid(0)}", "burn-in"),
            ("lift", f"hold:{hold['id']}", "fixed"),
        ]
        assert entries[0]["outcome"] == f"hold {hold['id']} placed on gpu:{uuid(0)}"
        assert entries[1]["outcome"].startswith("refused: ")
        assert entries[0]["actor"] == "operator at 127.0.0.1"
